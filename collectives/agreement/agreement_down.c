/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions: rank 0 makes them, every rank carries them out in the same order. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"

static void end_with_value(struct hvd_agreement *agreement, struct hvd_entry *entry,
                           int64_t value)
{
    entry->request->value = value;
    hvd_agreement_end_entry(agreement, entry, 0, "");
}

int hvd_agreement_take_join_end(struct hvd_agreement *agreement,
                                const struct hvd_batch_header *header)
{
    struct hvd_entry *join = agreement->join;

    hvd_membership_join_over(&agreement->membership);
    agreement->join = NULL;
    if (join == NULL) {
        return HVD_ERR_NET;
    }
    join->request->value = header->value;
    agreement->ended_join = join;
    hvd_agreement_end_join(agreement);
    return 0;
}

/* "0,2,5": the ranks of a set, which the caller frees; NULL without memory. */
static int *parse_ranks(const char *text, int *count)
{
    int *ranks = malloc((strlen(text) / 2 + 1) * sizeof(ranks[0]));
    char *end = (char *)text;

    *count = 0;
    while (ranks != NULL && *end != '\0') {
        ranks[(*count)++] = (int)strtol(end, &end, 10);
        end += *end == ',' ? 1 : 0;
    }
    return ranks;
}

static int add_set(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int count;
    int *ranks = parse_ranks(entry->proposal.note, &count);
    const struct hvd_set_members *same;
    int set, status;

    if (ranks == NULL) {
        return HVD_ERR_NOMEM;
    }
    same = hvd_membership_same(&agreement->membership, ranks, count);
    if (same != NULL) {
        free(ranks);
        hvd_agreement_end_entry(agreement, entry, HVD_ERR_ARG,
                                "A process set with the same ranks already exists.");
        return 0;
    }
    set = hvd_membership_add(&agreement->membership, ranks, count);
    status = set < 0 ? set : hvd_replay_add(agreement, set);
    status = status != 0 ? status
                         : agreement->ops->add_set(agreement->context, set, ranks, count);
    free(ranks);
    if (status == 0) {
        end_with_value(agreement, entry, set);
    }
    return status;
}

/* No rank has anything of the set left: each has asked for the removal and then waited for that
 * before it said so. */
static void remove_set(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int set = entry->proposal.root;

    if (set == HVD_SET_GLOBAL ||
        hvd_membership_find(&agreement->membership, set) == NULL) {
        hvd_agreement_end_entry(agreement, entry, HVD_ERR_ARG,
                                "There is no such process set to remove.");
        return;
    }
    hvd_replay_remove(agreement, set);
    hvd_membership_remove(&agreement->membership, set);
    agreement->ops->remove_set(agreement->context, set);
    end_with_value(agreement, entry, set);
}

int hvd_agreement_carry_out(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_entry *entry = batch->header.count > 0 ? batch->entries[0] : NULL;

    switch (batch->header.kind) {
    case HVD_KIND_SET_ADD:
        hvd_batch_destroy(batch); /* first: an entry that has ended may be freed */
        return add_set(agreement, entry);
    case HVD_KIND_SET_REMOVE:
        hvd_batch_destroy(batch);
        remove_set(agreement, entry);
        return 0;
    default:
        hvd_replay_run(agreement, batch);
        return 0;
    }
}

static int take_eviction(struct hvd_agreement *agreement, uint64_t id)
{
    struct hvd_cached_tensor *cached = hvd_tensor_cache_by_id(&agreement->cache, id);
    struct hvd_replay *replay;

    if (cached == NULL || cached->is_evicted) {
        return HVD_ERR_NET;
    }
    if (cached->mine != NULL && hvd_agreement_unbind(agreement, cached->mine) != 0) {
        return HVD_ERR_NOMEM;
    }
    hvd_tensor_cache_evict(&agreement->cache, cached, agreement->position);
    replay =
        hvd_replay_of(agreement, cached->key.set); /* NULL: removed with its tensors */
    if (replay != NULL &&
        cached->noted_at > replay->repetition.first_note) { /* on rank 0 */
        hvd_repetition_restart(&replay->repetition);
    }
    return 0;
}

static int take_settings(struct hvd_agreement *agreement, struct hvd_reader *reader)
{
    agreement->settings.fusion.threshold = hvd_take_int(reader);
    agreement->settings.fusion.cycle_ns = hvd_take_int(reader);
    return reader->failed ? HVD_ERR_NET : 0;
}

static int take_decision(struct hvd_agreement *agreement, int set,
                         struct hvd_reader *reader, int64_t now_ns)
{
    struct hvd_record record;

    if (hvd_take_record(reader, &record) != 0) {
        return HVD_ERR_NET;
    }
    switch (record.kind) {
    case HVD_DECISION_BATCH:
        return hvd_agreement_take_batch(agreement, reader, &record, now_ns);
    case HVD_DECISION_EVICT:
        return take_eviction(agreement, record.id);
    case HVD_DECISION_REPLAY:
        return hvd_replay_begin(agreement, set, reader, &record);
    case HVD_DECISION_BREAK:
        return hvd_replay_freeze(agreement, set, record.id);
    case HVD_DECISION_RESUME:
        return hvd_replay_resume(agreement, set, &record, reader, now_ns);
    case HVD_DECISION_ASK:
        return hvd_stall_answer(agreement, record.id, now_ns);
    case HVD_DECISION_SETTINGS:
        return take_settings(agreement, reader);
    default:
        return HVD_ERR_NET;
    }
}

int hvd_agreement_take_decisions(struct hvd_agreement *agreement, int set,
                                 struct hvd_reader *reader, int64_t now_ns)
{
    int status = 0;

    while (status == 0 && reader->bytes > 0) {
        status = take_decision(agreement, set, reader, now_ns);
    }
    return status;
}

static int pass_down(struct hvd_agreement *agreement, const void *payload, size_t bytes)
{
    if (agreement->membership.branches > 1 && agreement->ops->decided != NULL) {
        agreement->ops->decided(agreement->context);
    }
    return hvd_agreement_pass_down(agreement, payload, bytes);
}

int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns)
{
    bool moved;
    int status = pass_down(agreement, payload, bytes);

    agreement->counts.received++;
    agreement->counts.bytes_received += bytes;
    /* What has been said so far was said at the position before. */
    status = status != 0 ? status : hvd_agreement_pass_up(agreement, now_ns);
    status = status != 0 ? status : hvd_agreement_flush(agreement, &moved);
    return status != 0 ? status
                       : hvd_agreement_take_message(agreement, payload, bytes, now_ns);
}

int hvd_agreement_decide(struct hvd_agreement *agreement, int64_t now_ns)
{
    agreement->has_more = !hvd_coordinator_answer(
        agreement->coordinator, hvd_replay_of(agreement, HVD_SET_GLOBAL)->is_active,
        now_ns, &agreement->down, &agreement->set_down);
    return 0;
}

/* All ranks have joined: what they still had comes first. */
static int put_join_end(struct hvd_agreement *agreement, int64_t now_ns)
{
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_JOIN, .text = "", .value = agreement->last_joined};

    if (agreement->membership.joined < agreement->membership.layout->size ||
        hvd_replay_of(agreement, HVD_SET_GLOBAL)->is_active) {
        return 0;
    }
    hvd_agreement_decide(agreement, now_ns);
    if (!agreement->has_more) {
        hvd_put_batch(&agreement->down, &header);
    }
    return 0;
}

/* What comes of the decisions that have been sent: the rest of them, or replays. */
static int put_next(struct hvd_agreement *agreement, int64_t now_ns)
{
    if (agreement->has_more) {
        hvd_agreement_decide(agreement, now_ns);
        return put_join_end(agreement, now_ns);
    }
    return hvd_replay_put_due(agreement);
}

/* Decisions may lead to further ones: until there are none. */
int hvd_agreement_send_decisions(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = put_join_end(agreement, now_ns);
    struct hvd_writer message = {0};

    while (status == 0 && hvd_agreement_has_decided(agreement)) {
        message.bytes = 0; /* to be used again */
        status = hvd_agreement_make_message(agreement, &message);
        status = status != 0 ? status : pass_down(agreement, message.data, message.bytes);
        status = status != 0 ? status
                             : hvd_agreement_take_message(agreement, message.data,
                                                          message.bytes, now_ns);
        status = status != 0 ? status : put_next(agreement, now_ns);
    }
    hvd_writer_finish(&message);
    return status;
}

int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns)
{
    for (int set = 0; set < agreement->replays.count; set++) {
        struct hvd_replay *replay = hvd_replay_of(agreement, set);

        if (replay != NULL) {
            hvd_replay_put_break(agreement,
                                 replay); /* it was made with the old settings */
            hvd_repetition_restart(&replay->repetition);
        }
    }
    hvd_put_record(&agreement->down, HVD_DECISION_SETTINGS, 1, 0);
    hvd_put_int(&agreement->down, threshold);
    hvd_put_int(&agreement->down, cycle_ns);
    return agreement->down.failed ? HVD_ERR_NOMEM : 0;
}
