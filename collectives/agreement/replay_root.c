/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's part in replays: it finds and announces them, ends them, and keeps what it must not decide
 * meanwhile. */
#include "collectives/agreement/replay.h"

#include "collectives/agreement/agreement_state.h"

/* A replay of which nothing happens, while so many tensors (and twice its own number) are agreed
 * upon, belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

/* --- ends --- */

int hvd_replay_put_break(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_part part;

    if (!replay->is_active || replay->is_breaking) {
        return 0;
    }
    replay->is_breaking = true;
    agreement->counts.breaks++;
    part = hvd_part_begin(&agreement->decisions.writers, replay->set);
    hvd_put_record(part.writer, HVD_DECISION_BREAK, 1, replay->epoch);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

bool hvd_replays_put_break(struct hvd_agreement *agreement, bool restarts, int *status)
{
    bool any = false;

    for (int set = 0; set < agreement->replays.count && *status == 0; set++) {
        struct hvd_replay *replay = agreement->replays.of_set[set];

        if (replay != NULL) {
            any |= replay->is_active;
            *status = hvd_replay_put_break(agreement, replay);
        }
        if (replay != NULL && restarts) {
            hvd_repetition_restart(&replay->repetition);
        }
    }
    return any;
}

/* --- the repetition, and what it leads to --- */

static bool is_wanted(const struct hvd_agreement *agreement,
                      const struct hvd_replay *replay)
{
    return agreement->settings.may_replay && !agreement->is_settling &&
           !replay->is_active &&
           (replay->set != HVD_SET_GLOBAL || agreement->membership.joined == 0);
}

/* So many tensors have been agreed upon beside the replay. */
static int note_others(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       size_t tensors)
{
    replay->others += tensors;
    return replay->others > 2 * replay->order.tensors + outdated_after
               ? hvd_replay_put_break(agreement, replay)
               : 0;
}

static int note_repeated(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         const struct hvd_decided_batch *batch)
{
    const struct hvd_repeated_batch noted = {
        .lane = batch->bytes >= HVD_BULK_BYTES ? HVD_LANE_BULK : HVD_LANE_QUICK,
        .bytes = batch->bytes,
        .decided_ns = batch->now_ns,
        .overlaps = replay->running > 0,
    };

    if (!replay->is_noted) {
        replay->is_noted = true;
        replay->next_noted = agreement->replays.noted;
        agreement->replays.noted = replay;
    }
    return hvd_repetition_note(&replay->repetition, batch->tensors, batch->count, &noted);
}

int hvd_replay_note(struct hvd_agreement *agreement,
                    const struct hvd_decided_batch *batch)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, batch->set);

    if (replay == NULL) {
        return 0; /* removed meanwhile */
    }
    if (replay->is_active) {
        return note_others(agreement, replay, batch->count);
    }
    if (!is_wanted(agreement, replay)) {
        return 0;
    }
    if (batch->may_repeat) {
        return note_repeated(agreement, replay, batch);
    }
    if (replay->set != HVD_SET_GLOBAL) { /* it would end the replay: replay.h */
        hvd_repetition_restart(&replay->repetition);
    }
    return 0;
}

void hvd_replay_note_eviction(struct hvd_agreement *agreement,
                              const struct hvd_cached_tensor *cached)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, cached->key.set);

    /* NULL: removed with its tensors. */
    if (replay != NULL && cached->noted_at > replay->repetition.first_note) {
        hvd_repetition_restart(&replay->repetition);
    }
}

/* Of a further set: nothing of it is to be decided before the replay, and its tensors leave others
 * their room. */
static bool has_place(const struct hvd_agreement *agreement,
                      const struct hvd_replay *replay)
{
    size_t capacity = (size_t)agreement->settings.fusion.capacity;

    return replay->set == HVD_SET_GLOBAL ||
           (agreement->replays.set_tensors + replay->repetition.period <= capacity / 2 &&
            !hvd_coordinator_has(agreement->coordinator, replay->set));
}

static int put(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_repetition *repetition = &replay->repetition;
    struct hvd_part part = hvd_part_begin(&agreement->decisions.writers, replay->set);

    if (!agreement->settings.fusion.groups_alone) {
        hvd_repetition_merge(repetition, agreement->settings.fusion.threshold,
                             agreement->settings.fusion.cycle_ns);
    }
    hvd_put_record(part.writer, HVD_DECISION_REPLAY, (uint32_t)repetition->batch_count,
                   ++agreement->replays.announced);
    for (size_t i = 0; i < repetition->batch_count; i++) {
        const struct hvd_repeated_batch *batch = &repetition->batches[i];
        struct hvd_id_range range = {0};

        hvd_put_int(part.writer,
                    replay->set == HVD_SET_GLOBAL ? batch->lane : HVD_LANE_QUICK);
        hvd_put_int(part.writer, (int64_t)batch->count);
        for (size_t j = 0; j < batch->count; j++) {
            hvd_put_id(part.writer, HVD_TENSOR_IDS, &range,
                       repetition->tensors[batch->first + j]->id);
        }
        hvd_put_ids_end(part.writer, HVD_TENSOR_IDS, &range);
    }
    hvd_part_end(&part);
    if (replay->set != HVD_SET_GLOBAL) {
        agreement->replays.set_tensors += repetition->count;
    }
    hvd_repetition_restart(repetition);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_replays_put_due(struct hvd_agreement *agreement)
{
    struct hvd_replays *replays = &agreement->replays;
    int status = 0;

    while (status == 0 && replays->noted != NULL &&
           agreement->decisions.writers.sets.bytes < HVD_MESSAGE_BYTES) {
        struct hvd_replay *replay = replays->noted;

        replays->noted = replay->next_noted;
        replay->is_noted = false;
        if (is_wanted(agreement, replay) && has_place(agreement, replay) &&
            hvd_repetition_is_due(&replay->repetition)) {
            status = put(agreement, replay);
        }
    }
    return status;
}

/* --- what gets ready meanwhile --- */

int hvd_replay_admit(struct hvd_agreement *agreement, struct hvd_readiness *readiness,
                     int64_t now_ns)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, readiness->key.set);
    bool is_removal = hvd_readiness_proposal(readiness)->kind == HVD_KIND_SET_REMOVE;

    if (replay == NULL || replay->set == HVD_SET_GLOBAL || !replay->is_active ||
        is_removal) { /* with which the replay ends */
        return hvd_coordinator_add(agreement->coordinator, readiness, now_ns);
    }
    readiness->next = NULL;
    *replay->ready_end = readiness;
    replay->ready_end = &readiness->next;
    return hvd_replay_ask_break(agreement, replay, true);
}

int hvd_replay_admit_rest(struct hvd_agreement *agreement, struct hvd_replay *replay,
                          int64_t now_ns)
{
    int status = 0;

    while (replay->ready != NULL && status == 0) {
        struct hvd_readiness *readiness = replay->ready;

        replay->ready = readiness->next;
        status = hvd_coordinator_add(agreement->coordinator, readiness, now_ns);
    }
    replay->ready_end = &replay->ready;
    return status;
}

static void unnote(struct hvd_replays *replays, const struct hvd_replay *replay)
{
    struct hvd_replay **at = &replays->noted;

    while (*at != NULL && *at != replay) {
        at = &(*at)->next_noted;
    }
    if (*at != NULL) {
        *at = replay->next_noted;
    }
}

void hvd_replay_drop_ready(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    while (replay->ready != NULL) {
        struct hvd_readiness *readiness = replay->ready;

        replay->ready = readiness->next;
        hvd_readiness_table_give_back(&agreement->reports.readiness, readiness);
    }
    if (replay->is_noted) {
        unnote(&agreement->replays, replay);
    }
}
