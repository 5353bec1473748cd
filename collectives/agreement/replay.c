/* SPDX-License-Identifier: Apache-2.0 */
/* Replays: batches that repeat. */
#include "collectives/agreement/replay.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/validate.h"

/* A replay of which nothing happens, while so many tensors (and twice its own number) are agreed
 * upon, belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

/* How often to look for tensors that a replay holds up, when a thread waits and when none does. */
static const int64_t look_every_ns = 2000000;
static const int64_t look_alone_every_ns = 1000000000;

/* --- the replays of all sets --- */

struct hvd_replay *hvd_replay_of(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_replays *replays = &agreement->replays;

    return set >= 0 && set < replays->count ? replays->of_set[set] : NULL;
}

static int make_room(struct hvd_replays *replays, int set)
{
    struct hvd_replay **grown;

    if (set < replays->count) {
        return 0;
    }
    grown = realloc(replays->of_set, ((size_t)set + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    replays->of_set = grown;
    while (replays->count <= set) {
        grown[replays->count++] = NULL;
    }
    return 0;
}

int hvd_replay_add(struct hvd_agreement *agreement, int set)
{
    const struct hvd_set_members *members =
        hvd_membership_find(&agreement->membership, set);
    struct hvd_replay *replay = calloc(1, sizeof(*replay));

    if (replay == NULL || make_room(&agreement->replays, set) != 0) {
        free(replay);
        return HVD_ERR_NOMEM;
    }
    replay->set = set;
    replay->is_member = members->is_member;
    replay->answers = 1;
    for (int i = 1; i < agreement->membership.branches; i++) {
        replay->answers += members->in_branch[i] > 0 ? 1 : 0;
    }
    replay->ready_end = &replay->ready;
    hvd_repetition_init(&replay->repetition);
    agreement->replays.of_set[set] = replay;
    return 0;
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

static void destroy(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    while (replay->ready != NULL) {
        struct hvd_readiness *readiness = replay->ready;

        replay->ready = readiness->next;
        hvd_readiness_table_give_back(&agreement->reports.readiness, readiness);
    }
    if (replay->is_noted) {
        unnote(&agreement->replays, replay);
    }
    hvd_replay_order_finish(&replay->order);
    hvd_repetition_finish(&replay->repetition);
    free(replay);
}

/* Forgets what is replayed. */
static void end(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    bool is_paused = replay->is_frozen && replay->is_member;

    hvd_replay_order_unlink(&replay->order);
    replay->is_active = false;
    replay->is_frozen = false;
    replay->is_breaking = false;
    replay->wants_break = false;
    agreement->replays.waiting -= replay->waiting;
    replay->waiting = 0;
    if (agreement->is_root && replay->set != HVD_SET_GLOBAL) {
        agreement->replays.set_tensors -= replay->order.tensors;
    }
    if (is_paused) {
        agreement->ops->pause(agreement->context, replay->set, false);
    }
}

void hvd_replay_remove(struct hvd_agreement *agreement, int set)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);

    if (replay->is_active) {
        end(agreement, replay);
    }
    agreement->replays.of_set[set] = NULL;
    destroy(agreement, replay);
}

void hvd_replays_finish(struct hvd_agreement *agreement)
{
    struct hvd_replays *replays = &agreement->replays;

    for (int i = 0; i < replays->count; i++) {
        if (replays->of_set[i] != NULL) {
            destroy(agreement, replays->of_set[i]);
        }
    }
    free(replays->of_set);
}

/* --- rank 0: the repetition, and what it leads to --- */

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

int hvd_replay_admit(struct hvd_agreement *agreement, struct hvd_readiness *readiness,
                     int64_t now_ns)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, readiness->key.set);

    if (replay == NULL || replay->set == HVD_SET_GLOBAL || !replay->is_active) {
        return hvd_coordinator_add(agreement->coordinator, readiness, now_ns);
    }
    readiness->next = NULL;
    *replay->ready_end = readiness;
    replay->ready_end = &readiness->next;
    return hvd_replay_ask_break(agreement, replay, true);
}

static int admit_rest(struct hvd_agreement *agreement, struct hvd_replay *replay,
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

/* --- every rank: the replay begins --- */

/* What was reported of its tensors was a cycle ahead: it belongs to the replay's first cycle now. */
static void drop_reports(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    for (size_t i = 0; i < replay->order.count; i++) {
        const struct hvd_replay_batch *batch = &replay->order.batches[i];

        for (size_t j = 0; j < batch->count; j++) {
            hvd_readiness_table_drop(&agreement->reports.readiness,
                                     &batch->tensors[j].cached->key);
        }
    }
    if (agreement->is_root) {
        hvd_coordinator_drop_replayed(agreement->coordinator);
    }
}

/* Counts the tensors that this rank has submitted and reported in vain. */
static int adopt_entries(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->in_flight->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_cached_tensor *cached =
            entry->key.set == replay->set
                ? hvd_tensor_cache_find(&agreement->cache, &entry->key)
                : NULL;

        if (!entry->is_agreed && cached != NULL && cached->replayed != NULL) {
            hvd_in_flight_unbind(entry);
            hvd_in_flight_bind(entry, cached);
            status = hvd_replay_submit(agreement, entry);
        }
    }
    return status;
}

int hvd_replay_begin(struct hvd_agreement *agreement, int set,
                     const struct hvd_record *record, struct hvd_reader *reader)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);
    int status;

    if (replay == NULL || replay->is_active) {
        return HVD_ERR_NET;
    }
    replay->epoch = record->id;
    replay->is_active = true;
    replay->begun_at = agreement->decisions.position;
    replay->others = 0;
    agreement->counts.replays++;
    status = hvd_replay_order_read(&replay->order, &agreement->cache, replay->begun_at,
                                   record->count, reader);
    if (status != 0) {
        return status;
    }
    drop_reports(agreement, replay);
    return adopt_entries(agreement, replay);
}

/* --- the replay at work --- */

void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    hvd_replay_of(agreement, batch->header.set)->running++;
    agreement->ops->run(agreement->context, batch);
}

int hvd_replay_start(struct hvd_agreement *agreement, struct hvd_replay *replay, int lane)
{
    struct hvd_batch *batch = NULL;
    int status = replay->is_active && !replay->is_frozen
                     ? hvd_replay_order_start(&replay->order, replay->set, lane, &batch)
                     : 0;

    if (batch == NULL) {
        return status;
    }
    replay->waiting -= (size_t)batch->header.count;
    agreement->replays.waiting -= (size_t)batch->header.count;
    replay->others = 0;
    replay->running++;
    agreement->counts.replayed++;
    agreement->ops->run(agreement->context, batch);
    return 0;
}

/* Whether a tensor so described can take the place that it has in the replay. */
static bool fits(struct hvd_cached_tensor *cached, const struct hvd_proposal *proposal)
{
    return hvd_proposal_equal(cached->proposal, proposal) ||
           (cached->proposal->is_shared == proposal->is_shared &&
            hvd_validate_pair(cached, proposal, NULL) == 0);
}

int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, entry->key.set);
    bool is_anew = !fits(entry->cached, &entry->proposal);
    int lane = hvd_replay_order_submit(entry->cached, is_anew);

    replay->waiting++;
    agreement->replays.waiting++;
    return is_anew ? hvd_replay_ask_break(agreement, replay, true)
                   : hvd_replay_start(agreement, replay, lane);
}

bool hvd_replay_note_end(struct hvd_replay *replay, const struct hvd_batch *batch)
{
    replay->running--;
    return batch->number != 0 && hvd_replay_order_end(&replay->order, batch);
}

/* --- who wants its end --- */

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

int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong)
{
    struct hvd_writer *up;

    if (!replay->is_active || replay->is_breaking || replay->is_frozen ||
        replay->wants_break) {
        return 0; /* it has ended meanwhile, or is about to, or has been asked to */
    }
    replay->wants_break = true;
    if (!agreement->is_root) {
        up = hvd_reports_put(&agreement->reports, HVD_REPORT_BREAK, was_wrong ? 1 : 0,
                             replay->epoch);
        hvd_put_int(up, replay->set);
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

static bool has_waited(const struct hvd_entry *entry, bool is_hurried, int64_t now_ns)
{
    static const int64_t patience_ns = 5000000;
    static const int64_t most_patience_ns = 1000000000; /* nobody asks for it here */

    is_hurried |= atomic_load(&entry->request->is_asked_for);
    return now_ns - entry->submitted_ns > (is_hurried ? patience_ns : most_patience_ns);
}

int hvd_replays_look(struct hvd_agreement *agreement, bool is_hurried, int64_t now_ns)
{
    struct hvd_replays *replays = &agreement->replays;
    int status = 0;

    if (replays->waiting == 0 || now_ns - replays->last_look_ns < look_every_ns) {
        return 0;
    }
    replays->last_look_ns = now_ns;
    for (const struct hvd_entry *entry = agreement->in_flight->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_replay *replay;

        if (entry->is_agreed || entry->cached == NULL ||
            entry->cached->replayed == NULL || !has_waited(entry, is_hurried, now_ns)) {
            continue;
        }
        replay = hvd_replay_of(agreement, entry->key.set);
        if (hvd_replay_order_is_blocked(&replay->order, entry->cached)) {
            status = hvd_replay_ask_break(agreement, replay, true);
        }
    }
    return status;
}

int64_t hvd_replays_deadline(const struct hvd_agreement *agreement, bool is_waited,
                             int64_t now_ns)
{
    return agreement->replays.waiting > 0
               ? now_ns + (is_waited ? look_every_ns : look_alone_every_ns)
               : -1;
}

/* --- all stand still --- */

/* All of this rank's branches that have members have answered. */
static int answer(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_part part;
    struct hvd_writer *up;

    if (!agreement->is_root) {
        up = hvd_reports_put(&agreement->reports, HVD_REPORT_FROZEN, 1, replay->epoch);
        hvd_put_int(up, replay->set);
        put_lanes(up, replay->least, replay->most);
        return 0;
    }
    part = hvd_part_begin(&agreement->decisions.writers, replay->set);
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
    return !replay->is_member && replay->answers == 1 && !agreement->is_root;
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
        started[i] = replay->order.lanes[i].started;
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

static int start_void(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      int number)
{
    struct hvd_batch *batch;

    if (hvd_replay_order_start_void(&replay->order, replay->set, number, &batch) != 0) {
        return HVD_ERR_NOMEM;
    }
    hvd_replay_run(agreement, batch);
    return 0;
}

static int resume_lane(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       int number, uint64_t least, uint64_t most)
{
    const struct hvd_replay_lane *lane = &replay->order.lanes[number];

    if (least == most || !replay->is_member) {
        return 0;
    }
    if (most != least + 1) {
        return HVD_ERR_NET; /* no reduction ends before all have started it */
    }
    return lane->started == most ? take_back(agreement, lane->running)
                                 : start_void(agreement, replay, number);
}

/* Reports what was kept for the replay. */
static int report_kept(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->in_flight->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_cached_tensor *cached = entry->cached;

        if (entry->is_agreed || cached == NULL || cached->key.set != replay->set ||
            cached->replayed_at != replay->begun_at) {
            continue;
        }
        if (!hvd_proposal_equal(cached->proposal, &entry->proposal)) {
            hvd_in_flight_unbind(entry);
        }
        status = hvd_reports_add(agreement, entry);
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
    end(agreement, replay);
    status = status != 0 ? status : report_kept(agreement, replay);
    return status != 0 ? status : admit_rest(agreement, replay, now_ns);
}
