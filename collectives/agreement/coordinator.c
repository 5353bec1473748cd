/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides. */
#include "collectives/agreement/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/set/rank_list.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/period.h"
#include "collectives/agreement/response_cache.h"
#include "collectives/request/batch.h"
#include "gpu_binding/base/log.h"

/* A replay in which no batch starts while this many tensors, plus twice its own number,
 * are decided on belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

/* Rank 0's state of the replays of one process set. */
struct set_replays {
    const struct hvd_set *set;
    struct hvd_period period;
    bool is_noted; /* in the list `noted`, because batches were added to the period */
    struct set_replays *next_noted;
    /* While a replay is in force */
    uint64_t epoch; /* the number of the replay; 0: none is in force */
    size_t tensors; /* the number of its tensors */
    bool is_breaking;
    /* batches of the replay that rank 0 had started when it last took note */
    uint64_t replayed;
    size_t others; /* tensors decided on since then */
    /* of a set other than the global one: to be decided on after the replay */
    struct hvd_ready_tensor *kept;
    struct hvd_ready_tensor **kept_end;
};

struct hvd_coordinator {
    struct hvd_ready_table *table;
    struct hvd_response_cache *cache;
    const struct hvd_fusion *fusion;
    struct hvd_fusion_queue ready;
    struct hvd_decision_writers writers; /* the next message */
    bool has_more; /* more decisions follow in the message after that */
    int last_joined; /* the rank that was the last to join */
    uint64_t next_id;
    size_t leaving; /* evictions decided on in this round of answers */
    size_t coming;
    bool has_warned;
    /* Replays */
    struct set_replays **of_set; /* [set_count] by set; NULL: no such set */
    int set_count;
    bool may_replay;
    uint64_t announced;
    uint64_t breaks;
    size_t set_tensors; /* tensors in the replays of all sets but the global one */
    struct set_replays *noted;
};

int hvd_coordinator_create(const struct hvd_coordinator_config *config,
                           struct hvd_coordinator **out, struct hvd_error *err)
{
    struct hvd_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the coordinator");
    }
    coordinator->table = config->table;
    coordinator->cache = config->cache;
    coordinator->fusion = config->fusion;
    coordinator->may_replay = config->may_replay;
    hvd_fusion_queue_init(&coordinator->ready, config->table, config->fusion);
    coordinator->next_id = 1;
    coordinator->last_joined = -1;
    *out = coordinator;
    return 0;
}

void hvd_coordinator_destroy(struct hvd_coordinator *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    for (int set = 0; set < coordinator->set_count; set++) {
        hvd_coordinator_remove_set(coordinator, set);
    }
    free(coordinator->of_set);
    hvd_fusion_queue_finish(&coordinator->ready);
    hvd_writer_finish(&coordinator->writers.global);
    hvd_writer_finish(&coordinator->writers.sets);
    free(coordinator);
}

struct hvd_decision_writers *hvd_coordinator_writers(struct hvd_coordinator *coordinator)
{
    return &coordinator->writers;
}

/* --- process sets --- */

static struct set_replays *replays_of(const struct hvd_coordinator *coordinator, int set)
{
    return set >= 0 && set < coordinator->set_count ? coordinator->of_set[set] : NULL;
}

static bool is_replaying(const struct hvd_coordinator *coordinator, int set)
{
    const struct set_replays *replays = replays_of(coordinator, set);

    return replays != NULL && replays->epoch != 0;
}

static int make_set_room(struct hvd_coordinator *coordinator, int set)
{
    struct set_replays **grown;

    if (set < coordinator->set_count) {
        return 0;
    }
    grown = realloc(coordinator->of_set, ((size_t)set + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    coordinator->of_set = grown;
    while (coordinator->set_count <= set) {
        grown[coordinator->set_count++] = NULL;
    }
    return 0;
}

int hvd_coordinator_add_set(struct hvd_coordinator *coordinator, int set)
{
    struct set_replays *replays = calloc(1, sizeof(*replays));

    if (replays == NULL || make_set_room(coordinator, set) != 0) {
        free(replays);
        return HVD_ERR_NOMEM;
    }
    replays->set = hvd_sets_find(coordinator->table->sets, set);
    replays->kept_end = &replays->kept;
    hvd_period_init(&replays->period);
    coordinator->of_set[set] = replays;
    return 0;
}

/* Takes the set out of the list `noted`. */
static void unnote_set(struct hvd_coordinator *coordinator,
                       const struct set_replays *replays)
{
    struct set_replays **at = &coordinator->noted;

    while (*at != NULL && *at != replays) {
        at = &(*at)->next_noted;
    }
    if (*at != NULL) {
        *at = replays->next_noted;
    }
}

static void forget_replay(struct hvd_coordinator *coordinator,
                          struct set_replays *replays)
{
    if (replays->set->priorities == 1) {
        coordinator->set_tensors -= replays->tensors;
    }
    replays->epoch = 0;
    replays->tensors = 0;
    replays->is_breaking = false;
}

void hvd_coordinator_remove_set(struct hvd_coordinator *coordinator, int set)
{
    struct set_replays *replays = replays_of(coordinator, set);

    if (replays == NULL) {
        return;
    }
    while (replays->kept != NULL) {
        struct hvd_ready_tensor *ready_tensor = replays->kept;

        replays->kept = ready_tensor->next;
        hvd_ready_table_give_back(coordinator->table, ready_tensor);
    }
    forget_replay(coordinator, replays);
    unnote_set(coordinator, replays);
    hvd_period_finish(&replays->period);
    coordinator->of_set[set] = NULL;
    free(replays);
}

/* --- ready tensors --- */

/* Whether the tensor has to wait for the end of a replay. The removal of a set does not
 * wait: it ends the replay itself. */
static bool is_to_be_kept(const struct hvd_coordinator *coordinator,
                          const struct hvd_ready_tensor *ready_tensor)
{
    return ready_tensor->key.set != coordinator->table->sets->global->id &&
           is_replaying(coordinator, ready_tensor->key.set) &&
           hvd_ready_tensor_descriptor(ready_tensor)->kind != HVD_KIND_SET_REMOVE;
}

static int keep_tensor(struct hvd_coordinator *coordinator,
                       struct hvd_ready_tensor *ready_tensor)
{
    struct set_replays *replays = replays_of(coordinator, ready_tensor->key.set);

    ready_tensor->next = NULL;
    *replays->kept_end = ready_tensor;
    replays->kept_end = &ready_tensor->next;
    return hvd_coordinator_break(coordinator, replays->set->id, true);
}

int hvd_coordinator_admit(struct hvd_coordinator *coordinator, int64_t now_ns)
{
    int status = 0;

    while (coordinator->table->complete != NULL && status == 0) {
        struct hvd_ready_tensor *ready_tensor = hvd_ready_table_take(coordinator->table);

        status = is_to_be_kept(coordinator, ready_tensor)
                     ? keep_tensor(coordinator, ready_tensor)
                     : hvd_fusion_queue_add(&coordinator->ready, ready_tensor, now_ns);
    }
    return status;
}

int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator)
{
    return hvd_fusion_queue_deadline(&coordinator->ready);
}

static bool is_of_set(const void *context, const struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_set *set = context;

    return ready_tensor->key.set == set->id &&
           hvd_set_fails(set, hvd_ready_tensor_descriptor(ready_tensor));
}

void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator,
                              const struct hvd_set *set)
{
    struct set_replays *replays = replays_of(coordinator, set->id);

    hvd_fusion_queue_drop(&coordinator->ready, is_of_set, set);
    if (replays != NULL) {
        hvd_period_restart(&replays->period);
    }
}

static bool is_replayed(const void *context, const struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_coordinator *coordinator = context;
    const struct hvd_cached_tensor *cached =
        hvd_response_cache_find(coordinator->cache, &ready_tensor->key);

    return cached != NULL && cached->replayed != NULL;
}

void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator)
{
    hvd_fusion_queue_drop(&coordinator->ready, is_replayed, coordinator);
}

/* --- the decision about a batch: which tensors get ids, and which are evicted for them
 * --- */

static const struct hvd_set *set_of(const struct hvd_coordinator *coordinator, int set)
{
    return hvd_sets_find(coordinator->table->sets, set);
}

static bool is_cached_kind(enum hvd_kind kind)
{
    return kind <= HVD_KIND_SCATTER && kind != HVD_KIND_JOIN && kind != HVD_KIND_BARRIER;
}

static void evict_cached(struct hvd_coordinator *coordinator,
                         struct hvd_cached_tensor *cached)
{
    const struct hvd_part part = hvd_part_begin(&coordinator->writers, cached->key.set);

    cached->is_leaving = true;
    coordinator->leaving++;
    hvd_put_record(part.writer, HVD_DECISION_EVICT, 1, cached->id);
    hvd_part_end(&part);
}

/* Evicts the tensors of a set that is being removed: a later set may get the same number,
 * and only the members know its tensors. */
static void evict_set(struct hvd_coordinator *coordinator, int set)
{
    for (struct hvd_cached_tensor *cached = coordinator->cache->oldest; cached != NULL;
         cached = cached->newer) {
        if (cached->key.set == set && !cached->is_leaving) {
            evict_cached(coordinator, cached);
        }
    }
}

/* Makes room for one more tensor in the cache, by an eviction if necessary; returns false
 * if every cached tensor is in use. */
static bool make_room(struct hvd_coordinator *coordinator)
{
    size_t capacity = (size_t)coordinator->fusion->capacity;
    struct hvd_cached_tensor *cached = coordinator->cache->oldest;

    if (coordinator->cache->count + coordinator->coming - coordinator->leaving <
        capacity) {
        return true;
    }
    while (cached != NULL &&
           (cached->uses > 0 || cached->is_leaving || cached->replayed != NULL)) {
        cached = cached->newer;
    }
    if (capacity == 0 || cached == NULL) {
        return false;
    }
    if (!coordinator->has_warned) {
        coordinator->has_warned = true;
        hvd_log(HVD_LOG_WARN,
                "more than %d tensors are in use: the response cache evicts the least "
                "recently "
                "used ones, which ranks then describe anew; raise HOROVOD_CACHE_CAPACITY",
                coordinator->fusion->capacity);
    }
    evict_cached(coordinator, cached);
    return true;
}

/* Returns a new id for a tensor that was described in full, or 0: the tensor stays out of
 * the cache. */
static uint64_t give_id(struct hvd_coordinator *coordinator,
                        const struct hvd_ready *ready)
{
    struct hvd_cached_tensor *old =
        hvd_response_cache_find(coordinator->cache, &ready->ready_tensor->key);

    if (!is_cached_kind(hvd_ready_tensor_descriptor(ready->ready_tensor)->kind) ||
        ready->status != 0) {
        return 0;
    }
    if (old != NULL && !old->is_leaving) { /* all ranks describe the tensor anew */
        evict_cached(coordinator, old);
    }
    if (!make_room(coordinator)) {
        return 0;
    }
    coordinator->coming++;
    return coordinator->next_id++;
}

static void put_tensors(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                        const uint64_t *ids, struct hvd_writer *writer)
{
    struct hvd_id_range range = {0};

    for (const struct hvd_ready *ready = lead; ready != NULL;
         ready = ready->next, ids++) {
        const struct hvd_cached_tensor *cached = ready->ready_tensor->cached;

        if (cached != NULL && !cached->is_evicted &&
            ready->ready_tensor->described == 0) {
            hvd_put_id(writer, HVD_TENSOR_IDS, &range, cached->id);
            hvd_response_cache_touch(coordinator->cache, ready->ready_tensor->cached);
            continue;
        }
        hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
        hvd_put_record(writer, HVD_TENSOR_FULL, 1, *ids);
        hvd_put_descriptor(writer, hvd_ready_tensor_descriptor(ready->ready_tensor));
    }
    hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
}

static void put_rows(const struct hvd_coordinator *coordinator,
                     const struct hvd_ready *lead, const struct hvd_batch_header *header,
                     struct hvd_writer *writer)
{
    const struct hvd_set *set = set_of(coordinator, header->set);
    const struct hvd_ready_tensor *ready_tensor = lead->ready_tensor;
    int64_t *rows = calloc((size_t)header->row_count + 1, sizeof(rows[0]));

    if (rows == NULL) {
        writer->failed = true;
        return;
    }
    for (uint32_t i = 0; i < ready_tensor->row_count && header->row_count > 0; i++) {
        int index = hvd_set_index(set, (int)ready_tensor->rows[i].rank);

        if (index >= 0) {
            rows[index] = ready_tensor->rows[i].rows;
        }
    }
    hvd_put(writer, rows, (size_t)header->row_count * sizeof(rows[0]));
    free(rows);
}

/* Removes a set that its members have created, and then evicts its tensors. */
static void put_removal(struct hvd_coordinator *coordinator, int set)
{
    const struct hvd_part part = hvd_part_begin(&coordinator->writers, set);

    hvd_put_record(part.writer, HVD_DECISION_REMOVE, 1, 0);
    hvd_part_end(&part);
    evict_set(coordinator, set);
}

/* Writes a batch. Evictions come first, so that no name ever has two ids. */
static void put_batch(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                      const struct hvd_batch_header *header)
{
    const struct hvd_descriptor *first = hvd_ready_tensor_descriptor(lead->ready_tensor);
    uint64_t *ids = calloc((size_t)header->count, sizeof(ids[0]));
    struct hvd_part part;
    int64_t i = 0;

    if (ids == NULL) {
        coordinator->writers.global.failed = true;
        return;
    }
    if (header->kind == HVD_KIND_SET_REMOVE && header->status == 0 &&
        first->root != coordinator->table->sets->global->id) {
        evict_set(coordinator, first->root);
    }
    for (const struct hvd_ready *ready = lead; ready != NULL; ready = ready->next, i++) {
        const struct hvd_ready_tensor *ready_tensor = ready->ready_tensor;

        if (ready_tensor->cached == NULL || ready_tensor->cached->is_evicted) {
            ids[i] = give_id(coordinator, ready);
        }
    }
    part = hvd_part_begin(&coordinator->writers, header->set);
    hvd_put_batch(part.writer, header);
    put_tensors(coordinator, lead, ids, part.writer);
    put_rows(coordinator, lead, header, part.writer);
    hvd_part_end(&part);
    free(ids);
}

/* --- answers --- */

/* Returns a number for a set that all ranks add; 0: a set with the same ranks exists. */
static int number_set(struct hvd_coordinator *coordinator, const struct hvd_ready *lead)
{
    const struct hvd_sets *sets = coordinator->table->sets;
    struct hvd_decision_writers *writers = &coordinator->writers;
    int count = 0, *ranks = NULL;
    bool exists =
        hvd_rank_list_read(hvd_ready_tensor_descriptor(lead->ready_tensor)->note,
                           sets->layout->size, &ranks, &count) != 0 ||
        hvd_sets_same(sets, ranks, count) != NULL;

    free(ranks);
    if (exists) {
        return 0;
    }
    writers->last_set = hvd_sets_next(sets, writers->last_set);
    return writers->last_set;
}

static struct hvd_batch_header make_header(struct hvd_coordinator *coordinator,
                                           const struct hvd_fused *batch)
{
    const struct hvd_ready *lead = batch->first;
    const struct hvd_descriptor *descriptor =
        hvd_ready_tensor_descriptor(lead->ready_tensor);
    const struct hvd_set *set = set_of(coordinator, descriptor->set);
    bool is_gather = hvd_kind_has_rows(descriptor->kind) && lead->status == 0;
    bool adds_set = descriptor->kind == HVD_KIND_SET_ADD && lead->status == 0;
    /* a replay of the global set has the other queues */
    bool is_spare = is_replaying(coordinator, coordinator->table->sets->global->id);

    return (struct hvd_batch_header){
        .kind = descriptor->kind,
        .set = descriptor->set,
        .priority = set->priorities == 1             ? HVD_PRIORITY_QUICK
                    : is_spare                       ? HVD_PRIORITY_SPARE
                    : batch->bytes >= HVD_BULK_BYTES ? HVD_PRIORITY_BULK
                                                     : HVD_PRIORITY_QUICK,
        .status = lead->status,
        .text = lead->status != 0 ? lead->error.text : "",
        .max_block = lead->ready_tensor->max_block,
        .count = batch->count,
        .row_count = is_gather ? set->count : 0,
        .value = adds_set ? number_set(coordinator, lead) : 0,
    };
}

static void put_answer(struct hvd_coordinator *coordinator, const struct hvd_fused *batch)
{
    const struct hvd_batch_header header = make_header(coordinator, batch);

    if (header.kind == HVD_KIND_SET_REMOVE &&
        header.set != coordinator->table->sets->global->id && header.status == 0) {
        put_removal(coordinator, header.set);
    } else {
        put_batch(coordinator, batch->first, &header);
    }
    hvd_fusion_queue_give_back(&coordinator->ready, batch->first);
}

/* Decides on all tensors that are ready, but on no more than one message holds. */
static void put_answers(struct hvd_coordinator *coordinator, int64_t now_ns)
{
    const struct hvd_decision_writers *writers = &coordinator->writers;
    struct hvd_fusion_queue *ready = &coordinator->ready;

    coordinator->leaving = 0;
    coordinator->coming = 0;
    hvd_fusion_queue_begin(ready, now_ns);
    while (writers->global.bytes + writers->sets.bytes < HVD_MESSAGE_BYTES) {
        const struct hvd_fused batch = hvd_fusion_queue_take(ready);

        if (batch.first == NULL) {
            break;
        }
        put_answer(coordinator, &batch);
    }
    coordinator->has_more = !hvd_fusion_queue_end(ready);
}

/* --- joins --- */

void hvd_coordinator_join(struct hvd_coordinator *coordinator, int rank)
{
    coordinator->last_joined = rank;
}

/* When all ranks have joined, decides on the tensors that are still ready, and then ends
 * the joins. */
static void put_join_end(struct hvd_coordinator *coordinator, int64_t now_ns)
{
    const struct hvd_sets *sets = coordinator->table->sets;
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_JOIN, .text = "", .value = coordinator->last_joined};

    if (sets->joined < sets->layout->size ||
        is_replaying(coordinator, coordinator->table->sets->global->id)) {
        return;
    }
    put_answers(coordinator, now_ns);
    if (!coordinator->has_more) {
        hvd_put_batch(&coordinator->writers.global, &header);
    }
}

/* --- replays: their end --- */

static int put_break(struct hvd_coordinator *coordinator, struct set_replays *replays)
{
    struct hvd_part part;

    if (replays->epoch == 0 || replays->is_breaking) {
        return 0;
    }
    replays->is_breaking = true;
    coordinator->breaks++;
    part = hvd_part_begin(&coordinator->writers, replays->set->id);
    hvd_put_record(part.writer, HVD_DECISION_BREAK, 1, replays->epoch);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_coordinator_break(struct hvd_coordinator *coordinator, int set, bool was_wrong)
{
    struct set_replays *replays = replays_of(coordinator, set);

    if (replays == NULL || replays->epoch == 0 || replays->is_breaking) {
        return 0;
    }
    if (was_wrong) {
        hvd_period_was_wrong(&replays->period);
    }
    return put_break(coordinator, replays);
}

/* Breaks all replays. restarts: also forgets what has been seen of all periods. Returns
 * whether any replay is in force. */
static bool break_all(struct hvd_coordinator *coordinator, bool restarts, int *status)
{
    bool any = false;

    for (int set = 0; set < coordinator->set_count && *status == 0; set++) {
        struct set_replays *replays = coordinator->of_set[set];

        if (replays != NULL) {
            any |= replays->epoch != 0;
            *status = put_break(coordinator, replays);
        }
        if (replays != NULL && restarts) {
            hvd_period_restart(&replays->period);
        }
    }
    return any;
}

bool hvd_coordinator_settle(struct hvd_coordinator *coordinator, int *status)
{
    coordinator->may_replay = false;
    return !break_all(coordinator, false, status);
}

int hvd_coordinator_end_replay(struct hvd_coordinator *coordinator, int set,
                               int64_t now_ns)
{
    struct set_replays *replays = replays_of(coordinator, set);
    int status = 0;

    forget_replay(coordinator, replays);
    while (replays->kept != NULL && status == 0) {
        struct hvd_ready_tensor *ready_tensor = replays->kept;

        replays->kept = ready_tensor->next;
        status = hvd_fusion_queue_add(&coordinator->ready, ready_tensor, now_ns);
    }
    replays->kept_end = &replays->kept;
    return status;
}

uint64_t hvd_coordinator_breaks(const struct hvd_coordinator *coordinator)
{
    return coordinator->breaks;
}

/* --- replays: their beginning --- */

static bool is_wanted(const struct hvd_coordinator *coordinator,
                      const struct set_replays *replays)
{
    return coordinator->may_replay && replays->epoch == 0 &&
           (!replays->set->has_joins || coordinator->table->sets->joined == 0);
}

/* Breaks a replay that has stood still while many other tensors were decided on. */
static int note_others(struct hvd_coordinator *coordinator, struct set_replays *replays,
                       const struct hvd_decided_batch *batch)
{
    if (replays->replayed != batch->replayed) {
        replays->replayed = batch->replayed;
        replays->others = 0;
    }
    replays->others += batch->count;
    return replays->others > 2 * replays->tensors + outdated_after
               ? put_break(coordinator, replays)
               : 0;
}

static int note_repeated(struct hvd_coordinator *coordinator, struct set_replays *replays,
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
        replays->next_noted = coordinator->noted;
        coordinator->noted = replays;
    }
    return hvd_period_note(&replays->period, batch->tensors, batch->count, &noted);
}

int hvd_coordinator_note(struct hvd_coordinator *coordinator,
                         const struct hvd_decided_batch *batch)
{
    struct set_replays *replays = replays_of(coordinator, batch->set);

    if (replays == NULL) {
        return 0; /* the set has been removed */
    }
    if (replays->epoch != 0) {
        return note_others(coordinator, replays, batch);
    }
    if (!is_wanted(coordinator, replays)) {
        return 0;
    }
    if (batch->may_repeat) {
        return note_repeated(coordinator, replays, batch);
    }
    if (replays->set->priorities == 1) { /* such a batch would break a replay: replay.h */
        hvd_period_restart(&replays->period);
    }
    return 0;
}

void hvd_coordinator_note_eviction(struct hvd_coordinator *coordinator,
                                   const struct hvd_cached_tensor *cached)
{
    struct set_replays *replays = replays_of(coordinator, cached->key.set);

    /* NULL: the set has been removed, and its tensors with it. */
    if (replays != NULL && cached->noted_at > replays->period.first_note) {
        hvd_period_restart(&replays->period);
    }
}

/* Whether a replay may be announced now. For sets other than the global one, no tensor of
 * the set may be ready and undecided, and the tensors of all replays must fit into half
 * of the cache. */
static bool has_place(const struct hvd_coordinator *coordinator,
                      const struct set_replays *replays)
{
    size_t capacity = (size_t)coordinator->fusion->capacity;

    return replays->set->priorities > 1 ||
           (coordinator->set_tensors + replays->period.length <= capacity / 2 &&
            !hvd_fusion_queue_has(&coordinator->ready, replays->set->id));
}

static void put_replay_batches(const struct set_replays *replays,
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

static int put_replay(struct hvd_coordinator *coordinator, struct set_replays *replays)
{
    struct hvd_period *period = &replays->period;
    const struct hvd_part part = hvd_part_begin(&coordinator->writers, replays->set->id);

    if (!coordinator->fusion->groups_alone) {
        hvd_period_merge(period, coordinator->fusion->threshold,
                         coordinator->fusion->cycle_ns);
    }
    replays->epoch = ++coordinator->announced;
    replays->tensors = period->count;
    replays->replayed = 0;
    replays->others = 0;
    if (replays->set->priorities == 1) {
        coordinator->set_tensors += replays->tensors;
    }
    hvd_put_record(part.writer, HVD_DECISION_REPLAY, (uint32_t)period->batch_count,
                   replays->epoch);
    put_replay_batches(replays, part.writer);
    hvd_part_end(&part);
    hvd_period_restart(period);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

/* Announces the replays that are due. */
static int put_due_replays(struct hvd_coordinator *coordinator)
{
    int status = 0;

    while (status == 0 && coordinator->noted != NULL &&
           coordinator->writers.sets.bytes < HVD_MESSAGE_BYTES) {
        struct set_replays *replays = coordinator->noted;

        coordinator->noted = replays->next_noted;
        replays->is_noted = false;
        if (is_wanted(coordinator, replays) && has_place(coordinator, replays) &&
            hvd_period_is_due(&replays->period)) {
            status = put_replay(coordinator, replays);
        }
    }
    return status;
}

/* --- messages --- */

bool hvd_coordinator_has_work(const struct hvd_coordinator *coordinator)
{
    const struct hvd_sets *sets = coordinator->table->sets;

    return coordinator->table->complete != NULL || coordinator->ready.ready != NULL ||
           coordinator->writers.global.bytes > 0 || coordinator->writers.sets.bytes > 0 ||
           sets->joined == sets->layout->size;
}

void hvd_coordinator_decide(struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns)
{
    if (hvd_fusion_queue_is_due(&coordinator->ready, is_waited, now_ns)) {
        put_answers(coordinator, now_ns);
    }
    put_join_end(coordinator, now_ns);
}

int hvd_coordinator_continue(struct hvd_coordinator *coordinator, int64_t now_ns)
{
    if (coordinator->has_more) {
        put_answers(coordinator, now_ns);
        put_join_end(coordinator, now_ns);
        return 0;
    }
    return put_due_replays(coordinator);
}

bool hvd_coordinator_has_message(const struct hvd_coordinator *coordinator)
{
    return coordinator->writers.global.bytes > 0 || coordinator->writers.sets.bytes > 0;
}

int hvd_coordinator_make_message(struct hvd_coordinator *coordinator, uint64_t position,
                                 struct hvd_writer *out)
{
    struct hvd_writer *global = &coordinator->writers.global;
    struct hvd_writer *sets = &coordinator->writers.sets;
    bool failed = global->failed || sets->failed;

    hvd_put_int(out, (int64_t)position);
    hvd_put_int(out, (int64_t)global->bytes);
    hvd_put(out, global->data, global->bytes);
    hvd_put(out, sets->data, sets->bytes);
    global->bytes = 0;
    sets->bytes = 0;
    /* the message is carried out before more is written */
    coordinator->writers.last_set = 0;
    return failed || out->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_coordinator_tune(struct hvd_coordinator *coordinator, int64_t threshold,
                         int64_t cycle_ns)
{
    struct hvd_writer *writer = &coordinator->writers.global;
    int status = 0;

    break_all(coordinator, true, &status);
    hvd_put_record(writer, HVD_DECISION_SETTINGS, 1, 0);
    hvd_put_int(writer, threshold);
    hvd_put_int(writer, cycle_ns);
    return writer->failed ? HVD_ERR_NOMEM : status;
}
