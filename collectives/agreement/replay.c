/* SPDX-License-Identifier: Apache-2.0 */
/* Planned batches while all goes as foretold. */
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/validate.h"

/* A replay of which nothing happens, while so many tensors (and twice its own number) are agreed
 * upon, belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

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
    const struct hvd_set_members *membership =
        hvd_membership_find(&agreement->membership, set);
    struct hvd_replay *replay = calloc(1, sizeof(*replay));

    if (replay == NULL || make_room(&agreement->replays, set) != 0) {
        free(replay);
        return HVD_ERR_NOMEM;
    }
    replay->set = set;
    replay->is_member = membership->is_member;
    replay->answers = 1;
    for (int i = 1; i < agreement->membership.branches; i++) {
        replay->answers += membership->in_branch[i] > 0 ? 1 : 0;
    }
    replay->held_end = &replay->held;
    hvd_repetition_init(&replay->repetition);
    agreement->replays.of_set[set] = replay;
    return 0;
}

static void free_batches(struct hvd_replay *replay)
{
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        free(replay->lanes[i].batches);
        replay->lanes[i] = (struct hvd_replay_lane){0};
    }
    for (size_t i = 0; i < replay->count; i++) {
        free(replay->batches[i].tensors);
    }
    free(replay->batches);
    replay->batches = NULL;
    replay->count = 0;
    replay->tensors = 0;
    replay->others = 0;
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
    while (replay->held != NULL) {
        struct hvd_readiness *readiness = replay->held;

        replay->held = readiness->next;
        hvd_readiness_table_give_back(&agreement->readiness_table, readiness);
    }
    if (replay->is_noted) {
        unnote(&agreement->replays, replay);
    }
    free_batches(replay);
    hvd_repetition_finish(&replay->repetition);
    free(replay);
}

void hvd_replay_remove(struct hvd_agreement *agreement, int set)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);

    if (replay->is_active) {
        hvd_replay_end(agreement, replay);
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

void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    hvd_replay_of(agreement, batch->header.set)->running++;
    agreement->ops->run(agreement->context, batch);
}

static void unlink_occurrences(struct hvd_replay *replay)
{
    for (size_t i = 0; i < replay->count; i++) {
        for (size_t j = 0; j < replay->batches[i].count; j++) {
            replay->batches[i].tensors[j].cached->replayed = NULL;
        }
    }
}

void hvd_replay_end(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    bool is_paused = replay->is_frozen && replay->is_member;

    unlink_occurrences(replay);
    replay->is_active = false;
    replay->is_frozen = false;
    replay->is_breaking = false;
    replay->wants_break = false;
    agreement->replays.waiting -= replay->waiting;
    replay->waiting = 0;
    if (hvd_agreement_is_root(agreement) && replay->set != HVD_SET_GLOBAL) {
        agreement->replays.set_tensors -= replay->tensors;
    }
    if (is_paused) {
        agreement->ops->pause(agreement->context, replay->set, false);
    }
}

/* --- rank 0 --- */

int hvd_replay_note(struct hvd_agreement *agreement, struct hvd_replay *replay,
                    struct hvd_cached_tensor *const *tensors, size_t count,
                    const struct hvd_repeated_batch *batch)
{
    if (!replay->is_noted) {
        replay->is_noted = true;
        replay->next_noted = agreement->replays.noted;
        agreement->replays.noted = replay;
    }
    return hvd_repetition_note(&replay->repetition, tensors, count, batch);
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
    struct hvd_part part =
        hvd_part_begin(&agreement->down, &agreement->set_down, replay->set);

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

int hvd_replay_put_due(struct hvd_agreement *agreement)
{
    struct hvd_replays *replays = &agreement->replays;
    int status = 0;

    while (status == 0 && replays->noted != NULL &&
           agreement->set_down.bytes < HVD_MESSAGE_BYTES) {
        struct hvd_replay *replay = replays->noted;

        replays->noted = replay->next_noted;
        replay->is_noted = false;
        if (hvd_agreement_may_plan(agreement, replay) && has_place(agreement, replay) &&
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
    *replay->held_end = readiness;
    replay->held_end = &readiness->next;
    return hvd_replay_ask_break(agreement, replay, true);
}

int hvd_replay_release_held(struct hvd_agreement *agreement, struct hvd_replay *replay,
                            int64_t now_ns)
{
    int status = 0;

    while (replay->held != NULL && status == 0) {
        struct hvd_readiness *readiness = replay->held;

        replay->held = readiness->next;
        status = hvd_coordinator_add(agreement->coordinator, readiness, now_ns);
    }
    replay->held_end = &replay->held;
    return status;
}

/* --- every rank: the replay begins --- */

static int replay_tensor(struct hvd_agreement *agreement, struct hvd_replay_batch *batch,
                         size_t index, uint64_t id)
{
    struct hvd_cached_tensor *cached = hvd_tensor_cache_by_id(&agreement->cache, id);

    if (cached == NULL || cached->is_evicted) {
        return HVD_ERR_NET;
    }
    batch->tensors[index].cached = cached;
    if (cached->replayed_at != agreement->position) {
        cached->replayed_at = agreement->position;
        /* Who reports it was a cycle ahead: it is in the replay's first one now. */
        hvd_readiness_table_drop(&agreement->readiness_table, &cached->key);
    }
    return 0;
}

/* Links the batches that have a tensor, in the order of the replay, into a ring; `replayed`
 * is where it comes first. */
static void link_occurrences(struct hvd_replay *replay)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = replay->count; i-- > 0;) {
            struct hvd_replay_batch *batch = &replay->batches[i];

            for (size_t j = 0; j < batch->count; j++) {
                struct hvd_replay_tensor *tensor = &batch->tensors[j];

                /* In the second round the last one has found the first. */
                tensor->next = tensor->cached->replayed;
                tensor->cached->replayed = batch;
            }
        }
    }
}

static int read_batch(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      struct hvd_reader *reader, struct hvd_replay_batch *batch)
{
    size_t count = 0;
    int status = 0;

    batch->lane = (enum hvd_lane)hvd_take_int(reader);
    batch->count = (size_t)hvd_take_int(reader);
    if (reader->failed || (unsigned)batch->lane >= HVD_REPLAY_LANES) {
        return HVD_ERR_NET;
    }
    batch->missing = batch->count;
    replay->tensors += batch->count;
    batch->tensors = calloc(batch->count, sizeof(batch->tensors[0]));
    if (batch->tensors == NULL) {
        return HVD_ERR_NOMEM;
    }
    while (status == 0 && count < batch->count) {
        struct hvd_record record;

        if (hvd_take_record(reader, &record) != 0 ||
            count + record.count > batch->count) {
            return HVD_ERR_NET;
        }
        for (uint32_t i = 0; i < record.count && status == 0; i++) {
            status = replay_tensor(agreement, batch, count++, record.id + i);
        }
    }
    return status;
}

static int deal_out(struct hvd_replay *replay)
{
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        replay->lanes[i].batches =
            calloc(replay->count, sizeof(struct hvd_replay_batch *));
        if (replay->lanes[i].batches == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < replay->count; i++) {
        struct hvd_replay_lane *lane = &replay->lanes[replay->batches[i].lane];

        lane->batches[lane->count++] = &replay->batches[i];
    }
    return 0;
}

/* Counts the tensors that this rank has submitted and reported in vain. */
static int adopt_entries(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_cached_tensor *cached =
            entry->key.set == replay->set
                ? hvd_tensor_cache_find(&agreement->cache, &entry->key)
                : NULL;

        if (!entry->is_agreed && cached != NULL && cached->replayed != NULL) {
            status = hvd_agreement_unbind(agreement, entry);
            status = status != 0 ? status : hvd_replay_submit(agreement, entry, cached);
        }
    }
    return status;
}

/* Rank 0 makes replays when nobody has joined. Who has said so meanwhile crosses the replay,
 * and says it again after it, behind the tensors that it has: those will have been
 * reported by then. */
static int defer_joins(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    hvd_membership_join_over(&agreement->membership);
    if (agreement->join == NULL) {
        return 0;
    }
    agreement->is_join_deferred = true;
    return hvd_replay_ask_break(agreement, replay, false);
}

static int read_replay(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       struct hvd_reader *reader, size_t count)
{
    int status = 0;

    free_batches(replay);
    replay->batches = calloc(count, sizeof(replay->batches[0]));
    if (replay->batches == NULL) {
        return HVD_ERR_NOMEM;
    }
    replay->count = count;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = read_batch(agreement, replay, reader, &replay->batches[i]);
    }
    return status != 0 ? status : deal_out(replay);
}

int hvd_replay_begin(struct hvd_agreement *agreement, int set, struct hvd_reader *reader,
                     const struct hvd_record *record)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, set);
    int status;

    if (replay == NULL || replay->is_active) {
        return HVD_ERR_NET;
    }
    replay->epoch = record->id;
    replay->is_active = true;
    replay->begun_at = agreement->position;
    agreement->counts.replays++;
    status = read_replay(agreement, replay, reader, record->count);
    if (status == 0) {
        link_occurrences(replay);
    }
    if (status == 0 && hvd_agreement_is_root(agreement)) {
        hvd_coordinator_drop_replayed(agreement->coordinator);
    }
    status = status != 0 ? status : adopt_entries(agreement, replay);
    return status != 0 || set != HVD_SET_GLOBAL ? status : defer_joins(agreement, replay);
}

/* --- the replay at work --- */

int hvd_replay_note_others(struct hvd_agreement *agreement, struct hvd_replay *replay,
                           size_t tensors)
{
    replay->others += tensors;
    return replay->is_active && replay->others > 2 * replay->tensors + outdated_after
               ? hvd_replay_put_break(agreement, replay)
               : 0;
}

bool hvd_replay_fits(struct hvd_cached_tensor *cached,
                     const struct hvd_proposal *proposal)
{
    return hvd_proposal_equal(cached->proposal, proposal) ||
           (cached->proposal->is_shared == proposal->is_shared &&
            hvd_validate_pair(cached, proposal, NULL) == 0);
}

/* Tensors that were fused may differ in that: a rank may have had one elsewhere. */
static bool are_shared(const struct hvd_replay_batch *replayed)
{
    bool are = true;

    for (size_t i = 0; i < replayed->count && are; i++) {
        are = replayed->tensors[i].cached->proposal->is_shared;
    }
    return are;
}

struct hvd_batch *hvd_replay_make_batch(const struct hvd_replay *replay,
                                        const struct hvd_replay_batch *replayed,
                                        bool is_void)
{
    const struct hvd_proposal *first = replayed->tensors[0].cached->proposal;
    const struct hvd_batch_header header = {
        .kind = first->kind,
        .set = replay->set,
        .lane = replayed->lane,
        .count = (int64_t)replayed->count,
        .is_shared = are_shared(replayed),
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    for (size_t i = 0; batch != NULL && i < replayed->count; i++) {
        const struct hvd_cached_tensor *cached = replayed->tensors[i].cached;
        struct hvd_entry *entry =
            is_void ? hvd_entry_create_absent(cached->proposal) : cached->mine;

        batch->entries[i] = entry;
        if (entry == NULL) {
            hvd_batch_destroy(batch);
            return NULL;
        }
        entry->is_void = is_void;
        if (entry->submitted_ns > batch->submitted_ns) {
            batch->submitted_ns = entry->submitted_ns;
        }
    }
    return batch;
}

static int start(struct hvd_agreement *agreement, struct hvd_replay *replay, int number)
{
    struct hvd_replay_lane *lane = &replay->lanes[number];
    struct hvd_replay_batch *replayed;
    struct hvd_batch *batch;

    if (!replay->is_active || replay->is_frozen || lane->running != NULL ||
        lane->count == 0) {
        return 0;
    }
    replayed = lane->batches[lane->started % lane->count];
    if (replayed->missing > 0 || replayed->anew > 0) {
        return 0;
    }
    batch = hvd_replay_make_batch(replay, replayed, false);
    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < replayed->count; i++) {
        batch->entries[i]->is_agreed = true;
        replayed->tensors[i].cached->replayed = replayed->tensors[i].next;
    }
    replayed->missing = replayed->count;
    replay->waiting -= replayed->count;
    agreement->replays.waiting -= replayed->count;
    lane->running = batch;
    replay->others = 0;
    batch->number = ++lane->started;
    agreement->counts.replayed++;
    hvd_replay_run(agreement, batch);
    return 0;
}

int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                      struct hvd_cached_tensor *cached)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, cached->key.set);
    struct hvd_replay_batch *replayed = cached->replayed;
    bool is_anew = !hvd_replay_fits(cached, &entry->proposal);

    hvd_agreement_bind(agreement, entry, cached);
    replayed->missing--;
    replay->waiting++;
    agreement->replays.waiting++;
    replayed->anew += is_anew ? 1 : 0;
    return is_anew ? hvd_replay_ask_break(agreement, replay, true)
                   : start(agreement, replay, (int)replayed->lane);
}

int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, batch->header.set);
    int number = (int)batch->header.lane;
    /* Not one of an earlier replay, nor one before a void one; nor one that was decided. */
    bool is_last_one = batch->number != 0 && replay->lanes[number].running == batch;

    replay->running--;
    hvd_agreement_end_batch(agreement, batch);
    if (!is_last_one) {
        return 0;
    }
    replay->lanes[number].running = NULL;
    return start(agreement, replay, number);
}
