/* SPDX-License-Identifier: Apache-2.0 */
/* Relays messages of decisions down the tree. */
#include "collectives/agreement/relay.h"

#include <limits.h>
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/set/rank_list.h"
#include "collectives/transport/control/tree.h"

int hvd_relay_init(struct hvd_agreement *agreement)
{
    const struct hvd_layout *layout = agreement->sets->layout;
    struct hvd_relay *relay = &agreement->relay;
    size_t branches = (size_t)agreement->sets->branches;
    int *children = calloc(branches, sizeof(children[0]));

    relay->seen_by = calloc(branches, sizeof(relay->seen_by[0]));
    relay->sent_to = calloc(branches, sizeof(relay->sent_to[0]));
    if (children == NULL || relay->seen_by == NULL || relay->sent_to == NULL) {
        free(children);
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(layout, agreement->rank, children);
    while (relay->far_children < (int)branches - 1 &&
           layout->node[children[relay->far_children]] != layout->node[agreement->rank]) {
        relay->far_children++;
    }
    free(children);
    return 0;
}

void hvd_relay_finish(struct hvd_relay *relay)
{
    free(relay->seen_by);
    free(relay->sent_to);
    hvd_writer_finish(&relay->filtered);
}

/* --- parsing a message --- */

int hvd_relay_open(struct hvd_relay *relay, const void *payload, size_t bytes,
                   struct hvd_decision_parts *parts)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    int64_t global_bytes;

    parts->payload = payload;
    parts->bytes = bytes;
    parts->position = (uint64_t)hvd_take_int(&reader);
    global_bytes = hvd_take_int(&reader);
    if (reader.failed || parts->position <= relay->position || global_bytes < 0 ||
        (uint64_t)global_bytes > reader.bytes) {
        return HVD_ERR_NET;
    }
    parts->global =
        (struct hvd_reader){.data = reader.data, .bytes = (size_t)global_bytes};
    hvd_take(&reader, (size_t)global_bytes);
    parts->sets = reader;
    relay->position = parts->position;
    return 0;
}

static int take_part(struct hvd_reader *sets, int *set, struct hvd_reader *part)
{
    struct hvd_record record;
    const void *data;

    if (hvd_take_record(sets, &record) != 0 || record.kind != HVD_DECISION_SET ||
        record.id > INT_MAX) {
        return HVD_ERR_NET;
    }
    data = hvd_take(sets, record.count);
    *set = (int)record.id;
    *part = (struct hvd_reader){.data = data, .bytes = record.count};
    return data != NULL ? 0 : HVD_ERR_NET;
}

int hvd_relay_next(struct hvd_decision_parts *parts, int *set, struct hvd_reader *part)
{
    if (parts->global.bytes > 0) {
        *set = HVD_SET_GLOBAL;
        *part = parts->global;
        parts->global.bytes = 0;
        return 0;
    }
    *set = -1;
    return parts->sets.bytes > 0 ? take_part(&parts->sets, set, part) : 0;
}

/* --- which children get a part --- */

/* Branches first ... end - 1, which get the same message. */
struct audience {
    int first;
    int end;
};

/* Whether the audience must get a part about adding or removing a set that has a member
 * in `branch`. All ranks of a node number its shared memory in the same way
 * (shm_region.h), so they must all hear of sets that have a rank on the node. is_node:
 * the audience is the children on this node. Branch 0 is this rank, which is on the same
 * node. */
static bool is_reached(const struct hvd_agreement *agreement,
                       const struct audience *audience, int branch)
{
    bool is_node = audience->first > agreement->relay.far_children;

    return (branch >= audience->first && branch < audience->end) ||
           (branch == 0 && is_node);
}

/* Whether the creation concerns the audience. The set does not exist yet; the part lists
 * its members. */
static int concerns_creation(const struct hvd_agreement *agreement,
                             const struct audience *audience, struct hvd_reader *part,
                             bool *concerns)
{
    struct hvd_set_outcome outcome;
    int count = 0, status = hvd_take_set_outcome(part, &outcome);
    int *ranks = NULL;

    if (status == 0) {
        status = hvd_rank_list_read(outcome.list, agreement->sets->layout->size, &ranks,
                                    &count);
    }
    for (int i = 0; status == 0 && !*concerns && i < count; i++) {
        *concerns = is_reached(agreement, audience, agreement->sets->branch_of[ranks[i]]);
    }
    free(ranks);
    return status;
}

/* Finds whether a part concerns the audience. Returns 0, HVD_ERR_NOMEM, or another
 * failure if the part is malformed. */
static int find_concerned(const struct hvd_agreement *agreement,
                          const struct audience *audience, int set,
                          struct hvd_reader part, bool *concerns)
{
    const struct hvd_set *found = hvd_sets_find(agreement->sets, set);
    struct hvd_record first = {0};

    *concerns = false;
    if (hvd_take_record(&part, &first) == 0 && first.kind == HVD_DECISION_CREATE) {
        return concerns_creation(agreement, audience, &part, concerns);
    }
    for (int i = 0; found != NULL && i < audience->end && !*concerns; i++) {
        bool is_reached_here = first.kind == HVD_DECISION_REMOVE
                                   ? is_reached(agreement, audience, i)
                                   : i >= audience->first;

        *concerns = is_reached_here && found->in_branch[i] > 0;
    }
    return 0;
}

/* Writes the message without the parts that do not concern the audience; writes nothing
 * if none is left. */
static int filter(const struct hvd_agreement *agreement, const struct audience *audience,
                  const struct hvd_decision_parts *parts, struct hvd_writer *out)
{
    struct hvd_reader sets = parts->sets, part;
    bool concerns;
    int set;

    out->bytes = 0;
    hvd_put_int(out, (int64_t)parts->position);
    hvd_put_int(out, (int64_t)parts->global.bytes);
    hvd_put(out, parts->global.data, parts->global.bytes);
    while (sets.bytes > 0) {
        int status = take_part(&sets, &set, &part);

        if (status == 0) {
            status = find_concerned(agreement, audience, set, part, &concerns);
        }
        if (status != 0) {
            return status;
        }
        if (concerns) {
            hvd_put_record(out, HVD_DECISION_SET, (uint32_t)part.bytes, (uint64_t)set);
            hvd_put(out, part.data, part.bytes);
        }
    }
    if (out->bytes == 2 * sizeof(int64_t)) {
        out->bytes = 0;
    }
    return out->failed ? HVD_ERR_NOMEM : 0;
}

static void send_down(struct hvd_agreement *agreement, const struct audience *audience,
                      uint64_t position, const void *payload, size_t bytes)
{
    struct hvd_relay *relay = &agreement->relay;
    int children = audience->end - audience->first;
    const struct hvd_agreement_event event = {
        .kind = HVD_AGREEMENT_SEND_DOWN,
        .data = payload,
        .bytes = bytes,
        .down =
            {
                .child = audience->first <= relay->far_children ? audience->first - 1
                                                                : HVD_AGREEMENT_NODE,
                .is_first = position > relay->last_sent,
            },
    };

    if (bytes == 0 || children == 0) {
        return;
    }
    for (int i = audience->first; i < audience->end; i++) {
        relay->sent_to[i] = position;
    }
    relay->last_sent = position;
    agreement->counts.messages_down += (uint64_t)children;
    agreement->counts.bytes_sent += (uint64_t)children * bytes;
    hvd_event_queue_put(&agreement->events, &event, NULL);
}

int hvd_relay_pass_down(struct hvd_agreement *agreement,
                        const struct hvd_decision_parts *parts)
{
    struct hvd_relay *relay = &agreement->relay;
    struct hvd_writer *part = &relay->filtered;
    int branches = agreement->sets->branches, status = 0;

    for (int i = 1; i < branches && status == 0;) {
        bool is_far = i <= relay->far_children;
        const struct audience audience = {.first = i, .end = is_far ? i + 1 : branches};

        if (parts->sets.bytes == 0) {
            send_down(agreement, &audience, parts->position, parts->payload,
                      parts->bytes);
        } else {
            status = filter(agreement, &audience, parts, part);
            if (status == 0) {
                send_down(agreement, &audience, parts->position, part->data, part->bytes);
            }
        }
        i = audience.end;
    }
    return status;
}

bool hvd_relay_may_have_seen(const struct hvd_relay *relay, int branch, uint64_t position)
{
    return position >= relay->seen_by[branch] && position <= relay->position;
}

void hvd_relay_note_seen(struct hvd_agreement *agreement, int branch, uint64_t position)
{
    struct hvd_relay *relay = &agreement->relay;
    uint64_t least = relay->position;

    relay->seen_by[branch] = position;
    for (int i = 1; i < agreement->sets->branches; i++) {
        /* A child that has seen all messages sent to it names no older tensor. */
        bool has_all = relay->seen_by[i] >= relay->sent_to[i];

        least = !has_all && relay->seen_by[i] < least ? relay->seen_by[i] : least;
    }
    if (agreement->cache.first_evicted != NULL) {
        hvd_response_cache_forget(&agreement->cache, least);
    }
}
