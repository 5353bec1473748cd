/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a replay: all of its set stop at the same batch, what is in limbo is agreed upon after
 * all. */
#include <string.h>

#include "collectives/agreement/agreement_state.h"

static void put_lanes(struct hvd_writer *writer, const uint64_t *least,
                      const uint64_t *most)
{
    hvd_put(writer, least, HVD_REPLAY_LANES * sizeof(least[0]));
    hvd_put(writer, most, HVD_REPLAY_LANES * sizeof(most[0]));
}

static int take_lanes(struct hvd_reader *reader, uint64_t *least, uint64_t *most)
{
    const size_t bytes = HVD_REPLAY_LANES * sizeof(least[0]);
    const char *data = hvd_take(reader, 2 * bytes);

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(least, data, bytes);
    memcpy(most, data + bytes, bytes);
    return 0;
}

/* --- who wants it --- */

int hvd_replay_put_break(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_part part;

    if (!replay->is_active || replay->is_breaking) {
        return 0;
    }
    replay->is_breaking = true;
    agreement->counts.breaks++;
    part = hvd_part_begin(&agreement->down, &agreement->set_down, replay->set);
    hvd_put_record(part.writer, HVD_DECISION_BREAK, 1, replay->epoch);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong)
{
    if (!replay->is_active || replay->is_breaking || replay->is_frozen ||
        replay->wants_break) {
        return 0; /* it has ended meanwhile, or is about to, or has been asked to */
    }
    replay->wants_break = true;
    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_BREAK, was_wrong ? 1 : 0,
                             replay->epoch);
        hvd_put_int(&agreement->up, replay->set);
        return 0;
    }
    if (was_wrong) {
        hvd_repetition_was_wrong(&replay->repetition);
    }
    return hvd_replay_put_break(agreement, replay);
}

/* The replay that a report means, whose set comes next; NULL: it is over. */
static struct hvd_replay *take_replay(struct hvd_agreement *agreement,
                                      const struct hvd_record *record,
                                      struct hvd_reader *reader)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, (int)hvd_take_int(reader));

    return replay != NULL && replay->epoch == record->id ? replay : NULL;
}

int hvd_replay_take_break(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader)
{
    struct hvd_replay *replay = take_replay(agreement, record, reader);

    if (reader->failed) {
        return HVD_ERR_NET;
    }
    return replay != NULL ? hvd_replay_ask_break(agreement, replay, record->count != 0)
                          : 0;
}

/* Whether the tensor's batch cannot start because this rank has not submitted something. */
static bool is_held_up(const struct hvd_replay *replay,
                       const struct hvd_replay_batch *replayed)
{
    const struct hvd_replay_lane *lane = &replay->lanes[replayed->lane];

    return replayed->missing > 0 ||
           (lane->running == NULL &&
            lane->batches[lane->started % lane->count]->missing > 0);
}

static bool has_waited(const struct hvd_agreement *agreement,
                       const struct hvd_entry *entry, int64_t now_ns)
{
    static const int64_t patience_ns = 5000000;
    static const int64_t most_patience_ns = 1000000000; /* nobody asks for it here */
    bool is_asked_for =
        atomic_load(&entry->request->is_asked_for) || agreement->deferred_removals > 0;

    return now_ns - entry->submitted_ns > (is_asked_for ? patience_ns : most_patience_ns);
}

int hvd_replay_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = 0;

    for (const struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_replay *replay;

        if (entry->is_agreed || entry->cached == NULL ||
            entry->cached->replayed == NULL || !has_waited(agreement, entry, now_ns)) {
            continue;
        }
        replay = hvd_replay_of(agreement, entry->key.set);
        if (is_held_up(replay, entry->cached->replayed)) {
            status = hvd_replay_ask_break(agreement, replay, true);
        }
    }
    return status;
}

/* --- all stand still --- */

/* All of this rank's branches that have members have answered. */
static int answer(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_part part;

    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_FROZEN, 1, replay->epoch);
        hvd_put_int(&agreement->up, replay->set);
        put_lanes(&agreement->up, replay->least, replay->most);
        return 0;
    }
    part = hvd_part_begin(&agreement->down, &agreement->set_down, replay->set);
    hvd_put_record(part.writer, HVD_DECISION_RESUME, 1, replay->epoch);
    put_lanes(part.writer, replay->least, replay->most);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

static int join_answer(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       const uint64_t *least, const uint64_t *most)
{
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        replay->least[i] = least[i] < replay->least[i] ? least[i] : replay->least[i];
        replay->most[i] = most[i] > replay->most[i] ? most[i] : replay->most[i];
    }
    return ++replay->answered < replay->answers ? 0 : answer(agreement, replay);
}

/* Neither this rank nor one below it is in the set: it got the message because another on its node
 * is, and is not asked. */
static bool is_bystander(const struct hvd_agreement *agreement,
                         const struct hvd_replay *replay)
{
    return !replay->is_member && replay->answers == 1 &&
           !hvd_agreement_is_root(agreement);
}

int hvd_replay_freeze(struct hvd_agreement *agreement, int set, uint64_t epoch)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);
    uint64_t started[HVD_REPLAY_LANES];

    if (replay == NULL || replay->epoch != epoch || !replay->is_active) {
        return set != HVD_SET_GLOBAL ? 0 : HVD_ERR_NET; /* the set is removed */
    }
    if (replay->is_frozen) {
        return HVD_ERR_NET;
    }
    replay->is_frozen = true;
    replay->answered = 0;
    if (replay->is_member) {
        agreement->ops->pause(agreement->context, set, true);
    }
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        started[i] = replay->lanes[i].started;
        replay->least[i] = UINT64_MAX; /* of a rank that is no member */
        replay->most[i] = 0;
    }
    if (is_bystander(agreement, replay)) {
        return 0;
    }
    return replay->is_member
               ? join_answer(agreement, replay, started, started)
               : join_answer(agreement, replay, replay->least, replay->most);
}

int hvd_replay_take_frozen(struct hvd_agreement *agreement,
                           const struct hvd_record *record, struct hvd_reader *reader)
{
    struct hvd_replay *replay = take_replay(agreement, record, reader);
    uint64_t least[HVD_REPLAY_LANES], most[HVD_REPLAY_LANES];

    if (take_lanes(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    return replay != NULL && replay->is_frozen
               ? join_answer(agreement, replay, least, most)
               : 0;
}

/* --- and go on --- */

/* Takes this rank's tensors back from a batch that not all ranks have started. */
static int take_back(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    for (int64_t i = 0; i < batch->header.count; i++) {
        struct hvd_entry *entry = batch->entries[i];
        struct hvd_entry *absent = hvd_entry_create_absent(&entry->proposal);

        if (absent == NULL) {
            return HVD_ERR_NOMEM;
        }
        absent->is_void = true;
        batch->entries[i] = absent;
        entry->is_agreed = false;
    }
    agreement->ops->make_void(agreement->context, batch);
    return 0;
}

static int start_void(struct hvd_agreement *agreement, const struct hvd_replay *replay,
                      struct hvd_replay_lane *lane)
{
    struct hvd_batch *batch =
        hvd_replay_make_batch(replay, lane->batches[lane->started % lane->count], true);

    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    batch->number = ++lane->started;
    lane->running = batch;
    hvd_replay_run(agreement, batch);
    return 0;
}

static int resume_lane(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       int number, uint64_t least, uint64_t most)
{
    struct hvd_replay_lane *lane = &replay->lanes[number];

    if (least == most || !replay->is_member) {
        return 0;
    }
    if (most != least + 1) {
        return HVD_ERR_NET; /* no reduction ends before all have started it */
    }
    return lane->started == most ? take_back(agreement, lane->running)
                                 : start_void(agreement, replay, lane);
}

/* Reports what was kept for the replay. */
static int report_kept(struct hvd_agreement *agreement, const struct hvd_replay *replay,
                       int64_t now_ns)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_cached_tensor *cached = entry->cached;

        if (entry->is_agreed || cached == NULL || cached->key.set != replay->set ||
            cached->replayed_at != replay->begun_at) {
            continue;
        }
        if (!hvd_proposal_equal(cached->proposal, &entry->proposal)) {
            status = hvd_agreement_unbind(agreement, entry);
        }
        status = status != 0 ? status : hvd_agreement_report(agreement, entry, now_ns);
    }
    return status;
}

int hvd_replay_resume(struct hvd_agreement *agreement, int set,
                      const struct hvd_record *record, struct hvd_reader *reader,
                      int64_t now_ns)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);
    uint64_t least[HVD_REPLAY_LANES], most[HVD_REPLAY_LANES];
    int status = 0;

    if (take_lanes(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    if (replay == NULL || replay->epoch != record->id || !replay->is_frozen) {
        return set != HVD_SET_GLOBAL ? 0 : HVD_ERR_NET; /* the set is removed */
    }
    for (int i = 0; i < HVD_REPLAY_LANES && status == 0; i++) {
        status = resume_lane(agreement, replay, i, least[i], most[i]);
    }
    hvd_replay_end(agreement, replay);
    status = status != 0 ? status : report_kept(agreement, replay, now_ns);
    status = status != 0 ? status : hvd_replay_release_held(agreement, replay, now_ns);
    if (status == 0 && set == HVD_SET_GLOBAL && agreement->is_join_deferred) {
        agreement->is_join_deferred = false;
        status = hvd_agreement_note_join(agreement, agreement->rank, now_ns);
    }
    return status;
}
