/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a rank uses to move tensors, and how a limit on it is kept. */
#include "collectives/core/memory.h"

#include "collectives/request/batch.h"
#include "gpu_binding/base/env.h"

/* Slots are whole pages. One synchronization covers at most four slots of
 * least_slot_bytes; smaller slots would cost more in synchronization than in moving
 * bytes. */
static const size_t page_bytes = 4096;
static const size_t least_slot_bytes = 16384;

/* Returns the usual geometry with other slots; receive buffers shrink in proportion. */
static struct hvd_geometry with_slots_of(size_t slot_bytes)
{
    const struct hvd_geometry *usual = &hvd_usual_geometry;
    struct hvd_geometry geometry = *usual;

    geometry.slot_bytes = slot_bytes;
    geometry.recv_bytes = slot_bytes * (usual->recv_bytes / usual->slot_bytes);
    return geometry;
}

int64_t hvd_memory_bytes(const struct hvd_geometry *geometry, int nodes)
{
    size_t shared = 2 * geometry->slot_bytes;
    size_t own = nodes > 1 ? geometry->slot_bytes + geometry->recv_bytes : 0;

    return (int64_t)(shared + own) * geometry->slots * HVD_PRIORITIES;
}

int hvd_memory_plan(int64_t limit, int nodes, struct hvd_geometry *geometry,
                    struct hvd_error *err)
{
    const struct hvd_geometry page = with_slots_of(page_bytes);
    const struct hvd_geometry least = with_slots_of(least_slot_bytes);
    size_t slot_bytes;

    if (limit == 0 || limit >= hvd_memory_bytes(&hvd_usual_geometry, nodes)) {
        *geometry = hvd_usual_geometry;
        return 0;
    }
    if (limit < hvd_memory_bytes(&least, nodes)) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%s=%lld is too small: a rank of a job on %s needs at least %lld bytes, and "
            "uses %lld without a limit",
            HVD_ENV_MEMORY_LIMIT, (long long)limit,
            nodes > 1 ? "several nodes" : "one node",
            (long long)hvd_memory_bytes(&least, nodes),
            (long long)hvd_memory_bytes(&hvd_usual_geometry, nodes));
    }
    slot_bytes = (size_t)(limit / hvd_memory_bytes(&page, nodes)) * page_bytes;
    *geometry = with_slots_of(slot_bytes);
    return 0;
}

int64_t hvd_memory_stricter(int64_t limit, int64_t other)
{
    if (limit == 0 || other == 0) {
        return limit + other;
    }
    return limit < other ? limit : other;
}
