/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides when replays begin and end. */
#include "collectives/agreement/replay_decisions.h"

#include <stdlib.h>

#include "collectives/agreement/codec.h"
#include "collectives/agreement/fusion.h"
#include "collectives/agreement/period.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/response_cache.h"
#include "collectives/request/batch.h"

/* Rank 0 breaks a replay once it has decided on this many tensors that a replay may
 * contain, plus twice as many as the replay has, more than the replay has saved decisions
 * on: that part of the job is over, or rare. While the replay is in force, none can begin
 * for the other tensors. */
static const size_t outdated_after = 64;

/* A replay keeps nothing from being replayed if it stands beside tensors that no replay
 * may contain, such as those of GPUs. But its own tensors are not evicted from the cache:
 * rank 0 breaks it if it starts no batch while this many of the others are decided on. */
static const size_t idle_after = 4096;

/* A replay of this many cycles has saved more than its end costs: a wrong prediction at
 * the end of an epoch, for example, says nothing about the next one. */
static const uint64_t right_cycles = 16;

/* Rank 0's state of the replays of one process set. */
struct hvd_set_replays {
    const struct hvd_set *set;
    struct hvd_period period;
    bool is_noted; /* in the list `noted`, because batches were added to the period */
    struct hvd_set_replays *next_noted;
    /* While a replay is in force */
    uint64_t epoch; /* the number of the replay; 0: none is in force */
    size_t tensors; /* the number of its tensors */
    size_t batches; /* the number of its batches */
    bool is_breaking;
    bool was_wrong; /* it is breaking because its prediction was wrong */
    /* batches of the replay that rank 0 had started at its last decision on other
     * tensors */
    uint64_t replayed;
    /* tensors decided on that a replay may contain, less those replayed since; not below
     * 0 */
    size_t others;
    size_t idle; /* other tensors decided on since the replay last started a batch */
    /* ready tensors that wait until the replay has ended; not used for the global set */
    struct hvd_ready_tensor *kept;
    struct hvd_ready_tensor **kept_end;
};

/* --- process sets --- */

static struct hvd_set_replays *replays_of(const struct hvd_replay_decisions *decisions,
                                          int set)
{
    return set >= 0 && set < decisions->set_count ? decisions->of_set[set] : NULL;
}

bool hvd_replay_decisions_is_replaying(const struct hvd_replay_decisions *decisions,
                                       int set)
{
    const struct hvd_set_replays *replays = replays_of(decisions, set);

    return replays != NULL && replays->epoch != 0;
}

static int make_set_room(struct hvd_replay_decisions *decisions, int set)
{
    struct hvd_set_replays **grown;

    if (set < decisions->set_count) {
        return 0;
    }
    grown = realloc(decisions->of_set, ((size_t)set + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    decisions->of_set = grown;
    while (decisions->set_count <= set) {
        grown[decisions->set_count++] = NULL;
    }
    return 0;
}

int hvd_replay_decisions_add_set(struct hvd_replay_decisions *decisions, int set)
{
    struct hvd_set_replays *replays = calloc(1, sizeof(*replays));

    if (replays == NULL || make_set_room(decisions, set) != 0) {
        free(replays);
        return HVD_ERR_NOMEM;
    }
    replays->set = hvd_sets_find(decisions->table->sets, set);
    replays->kept_end = &replays->kept;
    hvd_period_init(&replays->period);
    decisions->of_set[set] = replays;
    return 0;
}

/* Takes the set out of the list `noted`. */
static void unnote_set(struct hvd_replay_decisions *decisions,
                       const struct hvd_set_replays *replays)
{
    struct hvd_set_replays **at = &decisions->noted;

    while (*at != NULL && *at != replays) {
        at = &(*at)->next_noted;
    }
    if (*at != NULL) {
        *at = replays->next_noted;
    }
}

static void forget_replay(struct hvd_replay_decisions *decisions,
                          struct hvd_set_replays *replays)
{
    if (replays->set->priorities == 1) {
        decisions->set_tensors -= replays->tensors;
    }
    replays->epoch = 0;
    replays->tensors = 0;
    replays->is_breaking = false;
    replays->was_wrong = false;
}

void hvd_replay_decisions_remove_set(struct hvd_replay_decisions *decisions, int set)
{
    struct hvd_set_replays *replays = replays_of(decisions, set);

    if (replays == NULL) {
        return;
    }
    while (replays->kept != NULL) {
        struct hvd_ready_tensor *ready_tensor = replays->kept;

        replays->kept = ready_tensor->next;
        hvd_ready_table_give_back(decisions->table, ready_tensor);
    }
    forget_replay(decisions, replays);
    unnote_set(decisions, replays);
    hvd_period_finish(&replays->period);
    decisions->of_set[set] = NULL;
    free(replays);
}

void hvd_replay_decisions_finish(struct hvd_replay_decisions *decisions)
{
    for (int set = 0; set < decisions->set_count; set++) {
        hvd_replay_decisions_remove_set(decisions, set);
    }
    free(decisions->of_set);
}

/* --- tensors that wait for the end of a replay --- */

bool hvd_replay_decisions_must_keep(const struct hvd_replay_decisions *decisions,
                                    const struct hvd_ready_tensor *ready_tensor)
{
    return ready_tensor->key.set != decisions->table->sets->global->id &&
           hvd_replay_decisions_is_replaying(decisions, ready_tensor->key.set) &&
           hvd_ready_tensor_descriptor(ready_tensor)->kind != HVD_KIND_SET_REMOVE;
}

int hvd_replay_decisions_keep(struct hvd_replay_decisions *decisions,
                              struct hvd_ready_tensor *ready_tensor)
{
    struct hvd_set_replays *replays = replays_of(decisions, ready_tensor->key.set);

    ready_tensor->next = NULL;
    *replays->kept_end = ready_tensor;
    replays->kept_end = &ready_tensor->next;
    return hvd_replay_decisions_break(decisions, replays->set->id, true);
}

/* --- replays: their end --- */

static int put_break(struct hvd_replay_decisions *decisions,
                     struct hvd_set_replays *replays)
{
    struct hvd_part part;

    if (replays->epoch == 0 || replays->is_breaking) {
        return 0;
    }
    replays->is_breaking = true;
    decisions->breaks++;
    part = hvd_part_begin(decisions->writers, replays->set->id);
    hvd_put_record(part.writer, HVD_DECISION_BREAK, 1, replays->epoch);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_replay_decisions_break(struct hvd_replay_decisions *decisions, int set,
                               bool was_wrong)
{
    struct hvd_set_replays *replays = replays_of(decisions, set);

    if (replays == NULL || replays->epoch == 0 || replays->is_breaking) {
        return 0;
    }
    replays->was_wrong = was_wrong;
    return put_break(decisions, replays);
}

bool hvd_replay_decisions_break_all(struct hvd_replay_decisions *decisions, bool restarts,
                                    int *status)
{
    bool any = false;

    for (int set = 0; set < decisions->set_count && *status == 0; set++) {
        struct hvd_set_replays *replays = decisions->of_set[set];

        if (replays != NULL) {
            any |= replays->epoch != 0;
            *status = put_break(decisions, replays);
        }
        if (replays != NULL && restarts) {
            hvd_period_restart(&replays->period);
        }
    }
    return any;
}

bool hvd_replay_decisions_settle(struct hvd_replay_decisions *decisions, int *status)
{
    decisions->may_replay = false;
    return !hvd_replay_decisions_break_all(decisions, false, status);
}

struct hvd_ready_tensor *
hvd_replay_decisions_end_replay(struct hvd_replay_decisions *decisions, int set,
                                uint64_t started)
{
    struct hvd_set_replays *replays = replays_of(decisions, set);
    struct hvd_ready_tensor *kept = replays->kept;

    if (replays->was_wrong && started < right_cycles * replays->batches) {
        hvd_period_was_wrong(&replays->period);
    }
    forget_replay(decisions, replays);
    replays->kept = NULL;
    replays->kept_end = &replays->kept;
    return kept;
}

void hvd_replay_decisions_restart(struct hvd_replay_decisions *decisions, int set)
{
    struct hvd_set_replays *replays = replays_of(decisions, set);

    if (replays != NULL) {
        hvd_period_restart(&replays->period);
    }
}

uint64_t hvd_replay_decisions_breaks(const struct hvd_replay_decisions *decisions)
{
    return decisions->breaks;
}

/* --- replays: their beginning --- */

static bool is_wanted(const struct hvd_replay_decisions *decisions,
                      const struct hvd_set_replays *replays)
{
    return decisions->may_replay && replays->epoch == 0 &&
           (!replays->set->has_joins || decisions->table->sets->joined == 0);
}

/* Breaks a replay that repeats less than is decided on beside it, or nothing. */
static int note_others(struct hvd_replay_decisions *decisions,
                       struct hvd_set_replays *replays,
                       const struct hvd_decided_batch *batch)
{
    const uint64_t saved =
        (batch->replayed - replays->replayed) * replays->tensors / replays->batches;

    replays->replayed = batch->replayed;
    replays->others -= saved < replays->others ? (size_t)saved : replays->others;
    replays->idle = saved > 0 ? 0 : replays->idle;
    *(batch->may_repeat ? &replays->others : &replays->idle) += batch->count;
    return replays->others > 2 * replays->tensors + outdated_after ||
                   replays->idle > idle_after
               ? put_break(decisions, replays)
               : 0;
}

static int note_repeated(struct hvd_replay_decisions *decisions,
                         struct hvd_set_replays *replays,
                         const struct hvd_decided_batch *batch)
{
    const struct hvd_repeated_batch noted = {
        .priority =
            batch->bytes >= HVD_BULK_BYTES ? HVD_PRIORITY_BULK : HVD_PRIORITY_QUICK,
        .bytes = batch->bytes,
        .decided_ns = batch->now_ns,
        .overlaps = batch->overlaps,
    };

    if (!replays->is_noted) {
        replays->is_noted = true;
        replays->next_noted = decisions->noted;
        decisions->noted = replays;
    }
    return hvd_period_note(&replays->period, batch->tensors, batch->count, &noted);
}

int hvd_replay_decisions_note(struct hvd_replay_decisions *decisions,
                              const struct hvd_decided_batch *batch)
{
    struct hvd_set_replays *replays = replays_of(decisions, batch->set);

    if (replays == NULL) {
        return 0; /* the set has been removed */
    }
    if (replays->epoch != 0) {
        return note_others(decisions, replays, batch);
    }
    if (!is_wanted(decisions, replays)) {
        return 0;
    }
    if (batch->may_repeat && !batch->is_spare) {
        return note_repeated(decisions, replays, batch);
    }
    /* a batch that cannot be replayed breaks the replay of such a set (replay.h) */
    if (replays->set->priorities == 1) {
        hvd_period_restart(&replays->period);
    }
    return 0;
}

void hvd_replay_decisions_note_eviction(struct hvd_replay_decisions *decisions,
                                        const struct hvd_cached_tensor *cached)
{
    struct hvd_set_replays *replays = replays_of(decisions, cached->key.set);

    /* replays is NULL if the set has been removed with its tensors. */
    if (replays != NULL && cached->noted_at > replays->period.first_note) {
        hvd_period_restart(&replays->period);
    }
}

/* Whether a replay may be announced now. For sets other than the global one, no tensor of
 * the set may be ready and undecided, and the tensors of all replays must fit into half
 * of the cache. */
static bool has_place(const struct hvd_replay_decisions *decisions,
                      const struct hvd_set_replays *replays,
                      const struct hvd_fusion_queue *ready)
{
    size_t capacity = (size_t)decisions->fusion->capacity;

    return replays->set->priorities > 1 ||
           (decisions->set_tensors + replays->period.length <= capacity / 2 &&
            !hvd_fusion_queue_has(ready, replays->set->id));
}

static void put_replay_batches(const struct hvd_set_replays *replays,
                               struct hvd_writer *writer)
{
    const struct hvd_period *period = &replays->period;

    for (size_t i = 0; i < period->batch_count; i++) {
        const struct hvd_repeated_batch *batch = &period->batches[i];
        struct hvd_id_range range = {0};

        hvd_put_int(writer,
                    replays->set->priorities > 1 ? batch->priority : HVD_PRIORITY_QUICK);
        hvd_put_int(writer, (int64_t)batch->count);
        for (size_t j = 0; j < batch->count; j++) {
            hvd_put_id(writer, HVD_TENSOR_IDS, &range,
                       period->tensors[batch->first + j]->id);
        }
        hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
    }
}

static int put_replay(struct hvd_replay_decisions *decisions,
                      struct hvd_set_replays *replays)
{
    struct hvd_period *period = &replays->period;
    const struct hvd_part part = hvd_part_begin(decisions->writers, replays->set->id);

    if (!decisions->fusion->groups_alone) {
        hvd_period_merge(period, decisions->fusion->threshold,
                         decisions->fusion->cycle_ns);
    }
    replays->epoch = ++decisions->announced;
    replays->tensors = period->count;
    replays->batches = period->batch_count;
    replays->replayed = 0;
    replays->others = 0;
    replays->idle = 0;
    if (replays->set->priorities == 1) {
        decisions->set_tensors += replays->tensors;
    }
    hvd_put_record(part.writer, HVD_DECISION_REPLAY, (uint32_t)period->batch_count,
                   replays->epoch);
    put_replay_batches(replays, part.writer);
    hvd_part_end(&part);
    hvd_period_restart(period);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_replay_decisions_put_due(struct hvd_replay_decisions *decisions,
                                 const struct hvd_fusion_queue *ready)
{
    int status = 0;

    while (status == 0 && decisions->noted != NULL &&
           decisions->writers->sets.bytes < HVD_MESSAGE_BYTES) {
        struct hvd_set_replays *replays = decisions->noted;

        decisions->noted = replays->next_noted;
        replays->is_noted = false;
        if (is_wanted(decisions, replays) && has_place(decisions, replays, ready) &&
            hvd_period_is_due(&replays->period)) {
            status = put_replay(decisions, replays);
        }
    }
    return status;
}
