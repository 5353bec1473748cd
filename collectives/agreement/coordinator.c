/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides on batches, ids, evictions, joins and settings. */
#include "collectives/agreement/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/set/rank_list.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/replay_decisions.h"
#include "collectives/agreement/response_cache.h"
#include "collectives/request/batch.h"
#include "gpu_binding/base/log.h"

struct hvd_coordinator {
    struct hvd_ready_table *table;
    struct hvd_response_cache *cache;
    const struct hvd_fusion *fusion;
    struct hvd_fusion_queue ready;
    struct hvd_decision_writers writers; /* the next message */
    bool has_more; /* not all ready tensors fitted into the message */
    int last_joined; /* the rank that was the last to join */
    uint64_t next_id;
    size_t leaving; /* evictions decided on by the present put_answers */
    size_t coming;
    bool has_warned;
    struct hvd_replay_decisions replays;
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
    coordinator->replays = (struct hvd_replay_decisions){
        .table = config->table,
        .fusion = config->fusion,
        .writers = &coordinator->writers,
        .may_replay = config->may_replay,
    };
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
    hvd_replay_decisions_finish(&coordinator->replays);
    hvd_fusion_queue_finish(&coordinator->ready);
    hvd_writer_finish(&coordinator->writers.global);
    hvd_writer_finish(&coordinator->writers.sets);
    free(coordinator);
}

struct hvd_decision_writers *hvd_coordinator_writers(struct hvd_coordinator *coordinator)
{
    return &coordinator->writers;
}

struct hvd_replay_decisions *hvd_coordinator_replays(struct hvd_coordinator *coordinator)
{
    return &coordinator->replays;
}

/* --- ready tensors --- */

int hvd_coordinator_admit(struct hvd_coordinator *coordinator, int64_t now_ns)
{
    int status = 0;

    while (coordinator->table->complete != NULL && status == 0) {
        struct hvd_ready_tensor *ready_tensor = hvd_ready_table_take(coordinator->table);

        status = hvd_replay_decisions_must_keep(&coordinator->replays, ready_tensor)
                     ? hvd_replay_decisions_keep(&coordinator->replays, ready_tensor)
                     : hvd_fusion_queue_add(&coordinator->ready, ready_tensor, now_ns);
    }
    return status;
}

int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator)
{
    const struct hvd_fusion_queue *queue = &coordinator->ready;

    return queue->ready != NULL ? queue->ready->ready_ns + queue->fusion->cycle_ns : -1;
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
    hvd_fusion_queue_drop(&coordinator->ready, is_of_set, set);
    hvd_replay_decisions_restart(&coordinator->replays, set->id);
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

/* Evicts the tensors of a set that is being removed, because a later set may get its
 * number. */
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
    /* the tensor has been described anew: its old id is outdated */
    if (old != NULL && !old->is_leaving) {
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

/* --- answers: the decisions about ready tensors --- */

/* Returns a number for a set that all ranks add, or 0 if a set with the same ranks
 * exists. */
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
    /* a replay of the global set uses the queues QUICK and BULK */
    bool is_spare = hvd_replay_decisions_is_replaying(
        &coordinator->replays, coordinator->table->sets->global->id);

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

/* Decides on the ready tensors, as many as one message holds. */
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
        hvd_replay_decisions_is_replaying(&coordinator->replays,
                                          coordinator->table->sets->global->id)) {
        return;
    }
    put_answers(coordinator, now_ns);
    if (!coordinator->has_more) {
        hvd_put_batch(&coordinator->writers.global, &header);
    }
}

int hvd_coordinator_end_replay(struct hvd_coordinator *coordinator, int set,
                               uint64_t started, int64_t now_ns)
{
    struct hvd_ready_tensor *kept =
        hvd_replay_decisions_end_replay(&coordinator->replays, set, started);
    int status = 0;

    while (kept != NULL) {
        struct hvd_ready_tensor *next = kept->next;

        if (status == 0) {
            status = hvd_fusion_queue_add(&coordinator->ready, kept, now_ns);
        } else {
            hvd_ready_table_give_back(coordinator->table, kept);
        }
        kept = next;
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
    return hvd_replay_decisions_put_due(&coordinator->replays, &coordinator->ready);
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
    /* sets created by this message will exist before the next one is written */
    coordinator->writers.last_set = 0;
    return failed || out->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_coordinator_tune(struct hvd_coordinator *coordinator, int64_t threshold,
                         int64_t cycle_ns)
{
    struct hvd_writer *writer = &coordinator->writers.global;
    int status = 0;

    hvd_replay_decisions_break_all(&coordinator->replays, true, &status);
    hvd_put_record(writer, HVD_DECISION_SETTINGS, 1, 0);
    hvd_put_int(writer, threshold);
    hvd_put_int(writer, cycle_ns);
    return writer->failed ? HVD_ERR_NOMEM : status;
}
