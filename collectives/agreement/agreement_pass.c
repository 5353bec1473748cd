/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of decisions, and who gets which part of them.
 *
 *   position      counts the messages that rank 0 has made
 *   bytes         of what follows for all ranks
 *   decisions     about the global process set, and about sets as such
 *   parts         each about one further set: a record (count: bytes, id: the set), decisions
 *
 * A child gets the parts of those sets that have ranks in its branch, and no message at all where
 * nothing is left: its position then stays behind. What all ranks get comes first. That can be, for
 * a set is there before anything is decided in it, and is removed when it has nothing left; but
 * its tensors are evicted in the message that removes it. */
#include <string.h>

#include "collectives/agreement/agreement_state.h"

/* A message, taken apart. */
struct parts {
    uint64_t position;
    struct hvd_reader global;
    struct hvd_reader sets;
};

static int read_parts(const void *payload, size_t bytes, struct parts *parts)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    int64_t global_bytes;

    parts->position = (uint64_t)hvd_take_int(&reader);
    global_bytes = hvd_take_int(&reader);
    if (reader.failed || global_bytes < 0 || (uint64_t)global_bytes > reader.bytes) {
        return HVD_ERR_NET;
    }
    parts->global =
        (struct hvd_reader){.data = reader.data, .bytes = (size_t)global_bytes};
    hvd_take(&reader, (size_t)global_bytes);
    parts->sets = reader;
    return 0;
}

static int take_part(struct hvd_reader *sets, int *set, struct hvd_reader *part)
{
    struct hvd_record record;
    const void *data;

    if (hvd_take_record(sets, &record) != 0 || record.kind != HVD_DECISION_SET) {
        return HVD_ERR_NET;
    }
    data = hvd_take(sets, record.count);
    *set = (int)record.id;
    *part = (struct hvd_reader){.data = data, .bytes = record.count};
    return data != NULL ? 0 : HVD_ERR_NET;
}

/* --- to whom --- */

/* Branches first ... end - 1, which get the same. */
struct audience {
    int first;
    int end;
};

static bool concerns(const struct hvd_agreement *agreement,
                     const struct audience *audience, int set)
{
    const struct hvd_set_members *found =
        hvd_membership_find(&agreement->membership, set);

    for (int i = audience->first; found != NULL && i < audience->end; i++) {
        if (found->in_branch[i] > 0) {
            return true;
        }
    }
    return false;
}

/* Writes down the message without the parts that do not concern the audience; leaves it empty when
 * nothing does. */
static int filter(const struct hvd_agreement *agreement, const struct audience *audience,
                  const struct parts *parts, struct hvd_writer *out)
{
    struct hvd_reader sets = parts->sets, part;
    int set;

    out->bytes = 0;
    hvd_put_int(out, (int64_t)parts->position);
    hvd_put_int(out, (int64_t)parts->global.bytes);
    hvd_put(out, parts->global.data, parts->global.bytes);
    while (sets.bytes > 0) {
        if (take_part(&sets, &set, &part) != 0) {
            return HVD_ERR_NET;
        }
        if (concerns(agreement, audience, set)) {
            hvd_put_record(out, HVD_DECISION_SET, (uint32_t)part.bytes, (uint64_t)set);
            hvd_put(out, part.data, part.bytes);
        }
    }
    if (out->bytes == 2 * sizeof(int64_t)) {
        out->bytes = 0;
    }
    return out->failed ? HVD_ERR_NOMEM : 0;
}

static int send(struct hvd_agreement *agreement, const struct audience *audience,
                uint64_t position, const void *payload, size_t bytes)
{
    int children = audience->end - audience->first;
    int child = audience->first <= agreement->far_children ? audience->first - 1
                                                           : HVD_AGREEMENT_NODE;

    if (bytes == 0 || children == 0) {
        return 0;
    }
    for (int i = audience->first; i < audience->end; i++) {
        agreement->sent_to[i] = position;
    }
    agreement->counts.messages_down += (uint64_t)children;
    agreement->counts.bytes_sent += (uint64_t)children * bytes;
    return agreement->ops->send_down(agreement->context, child, payload, bytes);
}

int hvd_agreement_pass_down(struct hvd_agreement *agreement, const void *payload,
                            size_t bytes)
{
    int branches = agreement->membership.branches;
    struct hvd_writer *part = &agreement->passed;
    struct parts parts;
    int status = read_parts(payload, bytes, &parts);

    for (int i = 1; i < branches && status == 0;) {
        bool is_far = i <= agreement->far_children;
        const struct audience audience = {.first = i, .end = is_far ? i + 1 : branches};

        if (parts.sets.bytes == 0) {
            status = send(agreement, &audience, parts.position, payload, bytes);
        } else {
            status = filter(agreement, &audience, &parts, part);
            status = status != 0 ? status
                                 : send(agreement, &audience, parts.position, part->data,
                                        part->bytes);
        }
        i = audience.end;
    }
    return status;
}

int hvd_agreement_take_message(struct hvd_agreement *agreement, const void *payload,
                               size_t bytes, int64_t now_ns)
{
    struct parts parts;
    struct hvd_reader part;
    int status = read_parts(payload, bytes, &parts), set;

    if (status == 0) {
        agreement->position = parts.position;
        status = hvd_agreement_take_decisions(agreement, HVD_SET_GLOBAL, &parts.global,
                                              now_ns);
    }
    while (status == 0 && parts.sets.bytes > 0) {
        status = take_part(&parts.sets, &set, &part);
        status = status != 0
                     ? status
                     : hvd_agreement_take_decisions(agreement, set, &part, now_ns);
    }
    hvd_tensor_cache_forget(
        &agreement->cache, agreement->membership.branches == 1 ? agreement->position : 0);
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}

/* --- rank 0 --- */

bool hvd_agreement_has_decided(const struct hvd_agreement *agreement)
{
    return agreement->down.bytes > 0 || agreement->set_down.bytes > 0;
}

int hvd_agreement_make_message(struct hvd_agreement *agreement, struct hvd_writer *out)
{
    struct hvd_writer *global = &agreement->down, *sets = &agreement->set_down;
    bool failed = global->failed || sets->failed;

    hvd_put_int(out, (int64_t)agreement->position + 1);
    hvd_put_int(out, (int64_t)global->bytes);
    hvd_put(out, global->data, global->bytes);
    hvd_put(out, sets->data, sets->bytes);
    global->bytes = 0;
    sets->bytes = 0;
    return failed || out->failed ? HVD_ERR_NOMEM : 0;
}
