/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decisions: complete readiness records go in, batches come out. */
#include "collectives/agreement/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/message.h"
#include "collectives/agreement/rank_list.h"
#include "collectives/agreement/readiness.h"
#include "collectives/agreement/tensor_cache.h"
#include "gpu_binding/base/log.h"

struct hvd_coordinator {
    struct hvd_readiness_table *readiness_table;
    struct hvd_tensor_cache *cache;
    const struct hvd_fusion *fusion;
    struct hvd_fusion_queue ready;
    struct hvd_decision_writers *writers; /* of the present answer */
    uint64_t next_id;
    size_t leaving; /* evictions in the present answer */
    size_t coming;
    bool has_warned;
};

int hvd_coordinator_create(struct hvd_readiness_table *readiness_table,
                           struct hvd_tensor_cache *cache,
                           const struct hvd_fusion *fusion, struct hvd_coordinator **out,
                           struct hvd_error *err)
{
    struct hvd_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the coordinator");
    }
    coordinator->readiness_table = readiness_table;
    coordinator->cache = cache;
    coordinator->fusion = fusion;
    hvd_fusion_queue_init(&coordinator->ready, readiness_table, fusion);
    coordinator->next_id = 1;
    *out = coordinator;
    return 0;
}

void hvd_coordinator_destroy(struct hvd_coordinator *coordinator)
{
    if (coordinator != NULL) {
        hvd_fusion_queue_finish(&coordinator->ready);
        free(coordinator);
    }
}

/* --- what is ready --- */

int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        struct hvd_readiness *readiness, int64_t now_ns)
{
    return hvd_fusion_queue_add(&coordinator->ready, readiness, now_ns);
}

bool hvd_coordinator_is_due(const struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns)
{
    return hvd_fusion_queue_is_due(&coordinator->ready, is_waited, now_ns);
}

int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator)
{
    return hvd_fusion_queue_deadline(&coordinator->ready);
}

bool hvd_coordinator_has(const struct hvd_coordinator *coordinator, int set)
{
    return hvd_fusion_queue_has(&coordinator->ready, set);
}

static bool is_of_set(const void *context, const struct hvd_readiness *readiness)
{
    const int *set = context;

    return readiness->key.set == *set &&
           hvd_proposal_ends_with_set(hvd_readiness_proposal(readiness));
}

void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator, int set)
{
    hvd_fusion_queue_drop(&coordinator->ready, is_of_set, &set);
}

static bool is_replayed(const void *context, const struct hvd_readiness *readiness)
{
    const struct hvd_coordinator *coordinator = context;
    const struct hvd_cached_tensor *cached =
        hvd_tensor_cache_find(coordinator->cache, &readiness->key);

    return cached != NULL && cached->replayed != NULL;
}

void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator)
{
    hvd_fusion_queue_drop(&coordinator->ready, is_replayed, coordinator);
}

/* --- the decision about a batch: who gets an id, who is evicted for it --- */

static const struct hvd_set_members *set_of(const struct hvd_coordinator *coordinator,
                                            int set)
{
    return hvd_membership_find(coordinator->readiness_table->membership, set);
}

static bool is_cached_kind(enum hvd_kind kind)
{
    return kind <= HVD_KIND_SCATTER && kind != HVD_KIND_JOIN && kind != HVD_KIND_BARRIER;
}

static void evict(struct hvd_coordinator *coordinator, struct hvd_cached_tensor *cached)
{
    const struct hvd_part part = hvd_part_begin(coordinator->writers, cached->key.set);

    cached->is_leaving = true;
    coordinator->leaving++;
    hvd_put_record(part.writer, HVD_DECISION_EVICT, 1, cached->id);
    hvd_part_end(&part);
}

/* Another set may get the number of one that is removed: only the ranks of this one know what its
 * tensors are. */
static void evict_set(struct hvd_coordinator *coordinator, int set)
{
    for (struct hvd_cached_tensor *cached = coordinator->cache->oldest; cached != NULL;
         cached = cached->newer) {
        if (cached->key.set == set && !cached->is_leaving) {
            evict(coordinator, cached);
        }
    }
}

/* Makes room for one more; false when there is none to be had. */
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
        hvd_log(
            HVD_LOG_WARN,
            "more than %d tensors are in use: the least recently used one is described "
            "anew each time; raise HOROVOD_CACHE_CAPACITY",
            coordinator->fusion->capacity);
    }
    evict(coordinator, cached);
    return true;
}

/* The id by which a tensor that was described in full is known from now on, or 0. */
static uint64_t give_id(struct hvd_coordinator *coordinator,
                        const struct hvd_ready *ready)
{
    struct hvd_cached_tensor *old =
        hvd_tensor_cache_find(coordinator->cache, &ready->readiness->key);

    if (!is_cached_kind(hvd_readiness_proposal(ready->readiness)->kind) ||
        ready->status != 0) {
        return 0;
    }
    if (old != NULL && !old->is_leaving) { /* all ranks describe it anew */
        evict(coordinator, old);
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
        const struct hvd_cached_tensor *cached = ready->readiness->cached;

        if (cached != NULL && !cached->is_evicted && ready->readiness->described == 0) {
            hvd_put_id(writer, HVD_TENSOR_IDS, &range, cached->id);
            hvd_tensor_cache_touch(coordinator->cache, ready->readiness->cached);
            continue;
        }
        hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
        hvd_put_record(writer, HVD_TENSOR_FULL, 1, *ids);
        hvd_put_proposal(writer, hvd_readiness_proposal(ready->readiness));
    }
    hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
}

static void put_rows(const struct hvd_coordinator *coordinator,
                     const struct hvd_ready *lead, const struct hvd_batch_header *header,
                     struct hvd_writer *writer)
{
    const struct hvd_set_members *set = set_of(coordinator, header->set);
    const struct hvd_readiness *readiness = lead->readiness;
    int64_t *rows = calloc((size_t)header->row_count + 1, sizeof(rows[0]));

    if (rows == NULL) {
        writer->failed = true;
        return;
    }
    for (uint32_t i = 0; i < readiness->row_count && header->row_count > 0; i++) {
        int index = hvd_set_members_index(set, (int)readiness->rows[i].rank);

        if (index >= 0) {
            rows[index] = readiness->rows[i].rows;
        }
    }
    hvd_put(writer, rows, (size_t)header->row_count * sizeof(rows[0]));
    free(rows);
}

/* A set that its members have created goes, and then its tensors. */
static void put_removal(struct hvd_coordinator *coordinator, int set)
{
    const struct hvd_part part = hvd_part_begin(coordinator->writers, set);

    hvd_put_record(part.writer, HVD_DECISION_REMOVE, 1, 0);
    hvd_part_end(&part);
    evict_set(coordinator, set);
}

/* Evictions come before the batch, so that a name is never known twice. */
static void put_batch(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                      const struct hvd_batch_header *header)
{
    const struct hvd_proposal *first = hvd_readiness_proposal(lead->readiness);
    uint64_t *ids = calloc((size_t)header->count, sizeof(ids[0]));
    struct hvd_part part;
    int64_t i = 0;

    if (ids == NULL) {
        coordinator->writers->global.failed = true;
        return;
    }
    if (header->kind == HVD_KIND_SET_REMOVE && header->status == 0 &&
        first->root != HVD_SET_GLOBAL) {
        evict_set(coordinator, first->root);
    }
    for (const struct hvd_ready *ready = lead; ready != NULL; ready = ready->next, i++) {
        const struct hvd_readiness *readiness = ready->readiness;

        if (readiness->cached == NULL || readiness->cached->is_evicted) {
            ids[i] = give_id(coordinator, ready);
        }
    }
    part = hvd_part_begin(coordinator->writers, header->set);
    hvd_put_batch(part.writer, header);
    put_tensors(coordinator, lead, ids, part.writer);
    put_rows(coordinator, lead, header, part.writer);
    hvd_part_end(&part);
    free(ids);
}

/* --- answers --- */

/* The number of a set that all ranks add; 0: it will not come about, for another has its ranks. */
static int number_set(struct hvd_coordinator *coordinator, const struct hvd_ready *lead)
{
    const struct hvd_membership *membership = coordinator->readiness_table->membership;
    struct hvd_decision_writers *writers = coordinator->writers;
    int count = 0, *ranks = NULL;
    bool exists = hvd_rank_list_read(hvd_readiness_proposal(lead->readiness)->note,
                                     membership->layout->size, &ranks, &count) != 0 ||
                  hvd_membership_same(membership, ranks, count) != NULL;

    free(ranks);
    if (exists) {
        return 0;
    }
    writers->last_set = hvd_membership_next(membership, writers->last_set);
    return writers->last_set;
}

static struct hvd_batch_header make_header(struct hvd_coordinator *coordinator,
                                           const struct hvd_fused *batch, bool only_spare)
{
    const struct hvd_ready *lead = batch->first;
    const struct hvd_proposal *proposal = hvd_readiness_proposal(lead->readiness);
    bool is_gather = hvd_kind_has_rows(proposal->kind) && lead->status == 0;
    bool adds_set = proposal->kind == HVD_KIND_SET_ADD && lead->status == 0;

    return (struct hvd_batch_header){
        .kind = proposal->kind,
        .set = proposal->set,
        .lane = only_spare                       ? HVD_LANE_SPARE
                : batch->bytes >= HVD_BULK_BYTES ? HVD_LANE_BULK
                                                 : HVD_LANE_QUICK,
        .status = lead->status,
        .text = lead->status != 0 ? lead->error.text : "",
        .max_block = lead->readiness->max_block,
        .count = batch->count,
        .row_count = is_gather ? set_of(coordinator, proposal->set)->count : 0,
        .value = adds_set ? number_set(coordinator, lead) : 0,
    };
}

static void answer_batch(struct hvd_coordinator *coordinator,
                         const struct hvd_fused *batch, bool only_spare)
{
    const struct hvd_batch_header header = make_header(coordinator, batch, only_spare);

    if (header.kind == HVD_KIND_SET_REMOVE && header.set != HVD_SET_GLOBAL &&
        header.status == 0) {
        put_removal(coordinator, header.set);
    } else {
        put_batch(coordinator, batch->first, &header);
    }
    hvd_fusion_queue_give_back(&coordinator->ready, batch->first);
}

bool hvd_coordinator_answer(struct hvd_coordinator *coordinator, bool only_spare,
                            int64_t now_ns, struct hvd_decision_writers *writers)
{
    struct hvd_fusion_queue *ready = &coordinator->ready;

    coordinator->writers = writers;
    coordinator->leaving = 0;
    coordinator->coming = 0;
    hvd_fusion_queue_begin(ready, now_ns);
    while (writers->global.bytes + writers->sets.bytes < HVD_MESSAGE_BYTES) {
        const struct hvd_fused batch = hvd_fusion_queue_take(ready);

        if (batch.first == NULL) {
            break;
        }
        answer_batch(coordinator, &batch, only_spare);
    }
    return hvd_fusion_queue_end(ready);
}
