/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a replay. */
#include "collectives/agreement/replay_order.h"

#include <stdlib.h>

#include "collectives/agreement/batch.h"

void hvd_replay_order_finish(struct hvd_replay_order *order)
{
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        free(order->lanes[i].batches);
    }
    for (size_t i = 0; i < order->count; i++) {
        free(order->batches[i].tensors);
    }
    free(order->batches);
    *order = (struct hvd_replay_order){0};
}

void hvd_replay_order_unlink(const struct hvd_replay_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        for (size_t j = 0; j < order->batches[i].count; j++) {
            order->batches[i].tensors[j].cached->replayed = NULL;
        }
    }
}

/* --- how it is read --- */

static int read_ids(struct hvd_tensor_cache *cache, uint64_t position,
                    const struct hvd_record *record, struct hvd_replay_tensor *tensors)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct hvd_cached_tensor *cached = hvd_tensor_cache_by_id(cache, record->id + i);

        if (cached == NULL || cached->is_evicted) {
            return HVD_ERR_NET;
        }
        cached->replayed_at = position;
        tensors[i].cached = cached;
    }
    return 0;
}

static int read_batch(struct hvd_tensor_cache *cache, uint64_t position,
                      struct hvd_replay_batch *batch, struct hvd_reader *reader)
{
    size_t count = 0;
    int status = 0;

    batch->lane = (enum hvd_lane)hvd_take_int(reader);
    batch->count = (size_t)hvd_take_int(reader);
    if (reader->failed || (unsigned)batch->lane >= HVD_REPLAY_LANES) {
        return HVD_ERR_NET;
    }
    batch->missing = batch->count;
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
        status = read_ids(cache, position, &record, batch->tensors + count);
        count += record.count;
    }
    return status;
}

/* Each lane's batches, in order. */
static int deal_out(struct hvd_replay_order *order)
{
    for (int i = 0; i < HVD_REPLAY_LANES; i++) {
        order->lanes[i].batches = calloc(order->count, sizeof(struct hvd_replay_batch *));
        if (order->lanes[i].batches == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < order->count; i++) {
        struct hvd_replay_lane *lane = &order->lanes[order->batches[i].lane];

        lane->batches[lane->count++] = &order->batches[i];
    }
    return 0;
}

/* Links the batches that have a tensor, in their order, into a ring; `replayed` is where it comes
 * first. */
static void link_occurrences(struct hvd_replay_order *order)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = order->count; i-- > 0;) {
            struct hvd_replay_batch *batch = &order->batches[i];

            for (size_t j = 0; j < batch->count; j++) {
                struct hvd_replay_tensor *tensor = &batch->tensors[j];

                /* In the second round the last one has found the first. */
                tensor->next = tensor->cached->replayed;
                tensor->cached->replayed = batch;
            }
        }
    }
}

int hvd_replay_order_read(struct hvd_replay_order *order, struct hvd_tensor_cache *cache,
                          uint64_t position, size_t count, struct hvd_reader *reader)
{
    int status = 0;

    hvd_replay_order_finish(order);
    order->batches = calloc(count, sizeof(order->batches[0]));
    if (order->batches == NULL) {
        return HVD_ERR_NOMEM;
    }
    order->count = count;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = read_batch(cache, position, &order->batches[i], reader);
        order->tensors += order->batches[i].count;
    }
    status = status != 0 ? status : deal_out(order);
    if (status == 0) {
        link_occurrences(order);
    }
    return status;
}

/* --- how it is followed --- */

static struct hvd_replay_batch *next_of(const struct hvd_replay_lane *lane)
{
    return lane->batches[lane->started % lane->count];
}

int hvd_replay_order_submit(const struct hvd_cached_tensor *cached, bool is_anew)
{
    struct hvd_replay_batch *batch = cached->replayed;

    batch->missing--;
    batch->anew += is_anew ? 1 : 0;
    return (int)batch->lane;
}

bool hvd_replay_order_is_blocked(const struct hvd_replay_order *order,
                                 const struct hvd_cached_tensor *cached)
{
    const struct hvd_replay_lane *lane = &order->lanes[cached->replayed->lane];

    return cached->replayed->missing > 0 ||
           (lane->running == NULL && next_of(lane)->missing > 0);
}

/* Makes the next batch of a lane, which runs from now on. NULL without memory. */
static struct hvd_batch *run_next(struct hvd_replay_lane *lane, int set, bool is_void)
{
    const struct hvd_replay_batch *replayed = next_of(lane);
    const struct hvd_batch_header header = {
        .kind = replayed->tensors[0].cached->proposal->kind,
        .set = set,
        .lane = replayed->lane,
        .count = (int64_t)replayed->count,
        .is_shared = true,
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
        /* Tensors that were fused may differ in that: a rank may have had one elsewhere. */
        batch->header.is_shared &= cached->proposal->is_shared;
    }
    if (batch != NULL) {
        batch->number = ++lane->started;
        lane->running = batch;
    }
    return batch;
}

int hvd_replay_order_start(struct hvd_replay_order *order, int set, int number,
                           struct hvd_batch **out)
{
    struct hvd_replay_lane *lane = &order->lanes[number];
    struct hvd_replay_batch *next;

    *out = NULL;
    if (lane->running != NULL || lane->count == 0) {
        return 0;
    }
    next = next_of(lane);
    if (next->missing > 0 || next->anew > 0) {
        return 0;
    }
    *out = run_next(lane, set, false);
    if (*out == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < next->count; i++) {
        (*out)->entries[i]->is_agreed = true;
        next->tensors[i].cached->replayed = next->tensors[i].next;
    }
    next->missing = next->count;
    return 0;
}

int hvd_replay_order_start_void(struct hvd_replay_order *order, int set, int number,
                                struct hvd_batch **out)
{
    *out = run_next(&order->lanes[number], set, true);
    return *out != NULL ? 0 : HVD_ERR_NOMEM;
}

bool hvd_replay_order_end(struct hvd_replay_order *order, const struct hvd_batch *batch)
{
    struct hvd_replay_lane *lane = &order->lanes[batch->header.lane];

    if (lane->running != batch) { /* of an earlier replay, or before a void one */
        return false;
    }
    lane->running = NULL;
    return true;
}
