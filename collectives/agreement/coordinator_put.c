/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decision about a batch, written down: who gets an id, who is evicted for it. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/coordinator_state.h"
#include "gpu_binding/base/log.h"

static bool is_cached_kind(enum hvd_kind kind)
{
    return kind <= HVD_KIND_REDUCESCATTER && kind != HVD_KIND_JOIN &&
           kind != HVD_KIND_BARRIER;
}

static void evict(struct hvd_coordinator *coordinator, struct hvd_known *known)
{
    const struct hvd_part part =
        hvd_part_begin(coordinator->writer, coordinator->set_writer, known->key.set);

    known->is_leaving = true;
    coordinator->leaving++;
    hvd_put_record(part.writer, HVD_DECISION_EVICT, 1, known->id);
    hvd_part_end(&part);
}

/* Another set may get the number of one that is removed: only the ranks of this one know what its
 * tensors are. */
static void evict_set(struct hvd_coordinator *coordinator, int set)
{
    for (struct hvd_known *known = coordinator->known->oldest; known != NULL;
         known = known->newer) {
        if (known->key.set == set && !known->is_leaving) {
            evict(coordinator, known);
        }
    }
}

/* Makes room for one more; false when there is none to be had. */
static bool make_room(struct hvd_coordinator *coordinator)
{
    size_t capacity = (size_t)coordinator->fusion->capacity;
    struct hvd_known *known = coordinator->known->oldest;

    if (coordinator->known->count + coordinator->coming - coordinator->leaving <
        capacity) {
        return true;
    }
    while (known != NULL &&
           (known->uses > 0 || known->is_leaving || known->planned != NULL)) {
        known = known->newer;
    }
    if (capacity == 0 || known == NULL) {
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
    evict(coordinator, known);
    return true;
}

/* The id by which a tensor that was described in full is known from now on, or 0. */
static uint64_t give_id(struct hvd_coordinator *coordinator,
                        const struct hvd_ready *ready)
{
    struct hvd_known *old = hvd_known_find(coordinator->known, &ready->tally->key);

    if (!is_cached_kind(hvd_tally_proposal(ready->tally)->kind) || ready->status != 0) {
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

static const struct hvd_member_set *set_of(const struct hvd_coordinator *coordinator,
                                           int set)
{
    return hvd_members_find(coordinator->tallies->members, set);
}

static void put_tensors(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                        const uint64_t *ids, struct hvd_writer *writer)
{
    struct hvd_id_range range = {0};

    for (const struct hvd_ready *ready = lead; ready != NULL;
         ready = ready->next, ids++) {
        const struct hvd_known *known = ready->tally->known;

        if (known != NULL && !known->is_evicted && ready->tally->described == 0) {
            hvd_put_id(writer, HVD_TENSOR_IDS, &range, known->id);
            hvd_known_touch(coordinator->known, ready->tally->known);
            continue;
        }
        hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
        hvd_put_record(writer, HVD_TENSOR_FULL, 1, *ids);
        hvd_put_proposal(writer, hvd_tally_proposal(ready->tally));
    }
    hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
}

static void put_rows(const struct hvd_coordinator *coordinator,
                     const struct hvd_ready *lead, const struct hvd_batch_header *header,
                     struct hvd_writer *writer)
{
    const struct hvd_member_set *set = set_of(coordinator, header->set);
    const struct hvd_tally *tally = lead->tally;
    int64_t *rows = calloc((size_t)header->row_count + 1, sizeof(rows[0]));

    if (rows == NULL) {
        writer->failed = true;
        return;
    }
    for (uint32_t i = 0; i < tally->row_count && header->row_count > 0; i++) {
        int index = hvd_members_index(set, (int)tally->rows[i].rank);

        if (index >= 0) {
            rows[index] = tally->rows[i].rows;
        }
    }
    hvd_put(writer, rows, (size_t)header->row_count * sizeof(rows[0]));
    free(rows);
}

/* Evictions come before the batch, so that a name is never known twice. */
void hvd_coordinator_put_batch(struct hvd_coordinator *coordinator,
                               struct hvd_ready *lead, struct hvd_batch_header *header)
{
    const struct hvd_proposal *first = hvd_tally_proposal(lead->tally);
    uint64_t *ids = calloc((size_t)header->count, sizeof(ids[0]));
    struct hvd_part part;
    int64_t i = 0;

    if (ids == NULL) {
        coordinator->writer->failed = true;
        return;
    }
    if (header->kind == HVD_KIND_SET_REMOVE && header->status == 0 &&
        first->root != HVD_SET_GLOBAL) {
        evict_set(coordinator, first->root);
    }
    for (const struct hvd_ready *ready = lead; ready != NULL; ready = ready->next, i++) {
        const struct hvd_tally *tally = ready->tally;

        if (tally->known == NULL || tally->known->is_evicted) {
            ids[i] = give_id(coordinator, ready);
        }
    }
    part = hvd_part_begin(coordinator->writer, coordinator->set_writer, header->set);
    hvd_put_batch(part.writer, header);
    put_tensors(coordinator, lead, ids, part.writer);
    put_rows(coordinator, lead, header, part.writer);
    hvd_part_end(&part);
    free(ids);
}
