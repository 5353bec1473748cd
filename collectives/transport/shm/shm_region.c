/* SPDX-License-Identifier: Apache-2.0 */
/* A region of the node's memory: staging slots and counters for one team. */
#include "collectives/transport/shm/shm_region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collectives/transport/shm/shm_pages.h"
#include "collectives/transport/shm/shm_state.h"

/* The lower bits of a counter count signals, the upper ones uses of the extent. 2^44
 * signals take more than half a year. An extent whose uses are exhausted is not used
 * again. */
static const int signal_bits = 44;
static const uint64_t most_uses = (1 << 20) - 1;

/* The counter and the LINEs of a rank: small data arrives in the cache line of the
 * counter. The alignment is explained in shm_state.h. */
struct line {
    _Alignas(128) _Atomic uint64_t counter;
    char small[2][HVD_LINE_BYTES];
};

struct hvd_shm_region {
    struct hvd_shm *shm;
    int extent;
    uint64_t base;
    uint64_t signals; /* value of this rank's counter, so that it need not be read */
    bool owes_ring; /* this rank has signalled and not woken sleepers since */
    struct line *lines; /* [local rank], at the start of the mapped memory */
    char *slots; /* the slots of local rank 0; not mapped if this rank is not a member */
    size_t map_bytes;
    size_t rank_bytes; /* bytes of one rank's slots */
    uint64_t *seen; /* [local rank] the highest counter read so far */
    int count;
    int members[];
};

/* Returns the lowest free extent, adding one if there is none; or a negative status. */
static int find_extent(struct hvd_shm *shm, struct hvd_error *err)
{
    struct hvd_shm_extent *grown;
    int at = 0;

    while (at < shm->extent_count &&
           (shm->extents[at].is_open || shm->extents[at].uses == most_uses)) {
        at++;
    }
    if (at == shm->extent_count) {
        grown = realloc(shm->extents, ((size_t)at + 1) * sizeof(*grown));
        if (grown == NULL) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
        }
        grown[at] = (struct hvd_shm_extent){0};
        shm->extents = grown;
        shm->extent_count++;
    }
    return at;
}

static bool is_member(const struct hvd_shm_region *region, int local_rank)
{
    for (int i = 0; i < region->count; i++) {
        if (region->members[i] == local_rank) {
            return true;
        }
    }
    return false;
}

/* Backs and maps the memory that this rank touches: the lines, and, if it is a member,
 * the slots. A member backs its own slots, and touches those of others only after they
 * have signalled. */
static int map_region(struct hvd_shm_region *region, struct hvd_error *err)
{
    const struct hvd_shm *shm = region->shm;
    const size_t lines_bytes =
        hvd_shm_round_to_page((size_t)shm->sizes.local_size * sizeof(struct line));
    size_t bytes = lines_bytes + (size_t)shm->sizes.local_size * region->rank_bytes;
    size_t at = shm->regions_at + (size_t)region->extent * bytes;
    size_t own = lines_bytes + (size_t)shm->local_rank * region->rank_bytes;
    int status = hvd_shm_back(shm->fd, at, lines_bytes, err);
    void *map;

    if (status == 0 && is_member(region, shm->local_rank)) {
        status = hvd_shm_back(shm->fd, at + own, region->rank_bytes, err);
    } else {
        bytes = lines_bytes;
    }
    if (status != 0) {
        return status;
    }
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, (off_t)at);
    if (map == MAP_FAILED) {
        return hvd_fail(err, HVD_ERR_NOMEM, "cannot map %zu bytes of shared memory: %m",
                        bytes);
    }
    region->lines = map;
    region->slots = (char *)map + lines_bytes;
    region->map_bytes = bytes;
    return 0;
}

static struct hvd_shm_region *region_create(struct hvd_shm *shm, const int *members,
                                            int count)
{
    const struct hvd_geometry *geometry = &shm->sizes.geometry;
    size_t member_bytes = (size_t)count * sizeof(members[0]);
    struct hvd_shm_region *region = calloc(1, sizeof(*region) + member_bytes);
    uint64_t *seen = calloc((size_t)shm->sizes.local_size, sizeof(seen[0]));

    if (region == NULL || seen == NULL) {
        free(region);
        free(seen);
        return NULL;
    }
    region->shm = shm;
    region->seen = seen;
    region->rank_bytes =
        hvd_shm_round_to_page(2 * (size_t)geometry->slots * geometry->slot_bytes);
    region->count = count;
    memcpy(region->members, members, member_bytes);
    return region;
}

static void region_destroy(struct hvd_shm_region *region)
{
    free(region->seen);
    free(region);
}

/* Wakes members that sleep until a counter changes or the region is ready. */
static void ring_members(const struct hvd_shm_region *region)
{
    for (int i = 0; i < region->count; i++) {
        if (region->members[i] != region->shm->local_rank) {
            hvd_shm_ring_sleeper(region->shm, region->members[i]);
        }
    }
}

int hvd_shm_region_open(struct hvd_shm *shm, const int *members, int count,
                        struct hvd_shm_region **out, struct hvd_error *err)
{
    int extent = find_extent(shm, err);
    struct hvd_shm_region *region;
    int status;

    if (extent < 0) {
        return extent;
    }
    region = region_create(shm, members, count);
    if (region == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    region->extent = extent;
    status = map_region(region, err);
    if (status != 0) {
        region_destroy(region);
        return status;
    }
    shm->extents[extent].is_open = true;
    region->base = ++shm->extents[extent].uses << signal_bits;
    region->signals = region->base;
    atomic_store(&region->lines[shm->local_rank].counter, region->base);
    ring_members(region);
    *out = region;
    return 0;
}

void hvd_shm_region_close(struct hvd_shm_region *region)
{
    if (region != NULL) {
        hvd_shm_region_ring(region);
        region->shm->extents[region->extent].is_open = false;
        munmap(region->lines, region->map_bytes);
        region_destroy(region);
    }
}

bool hvd_shm_region_is_ready(const struct hvd_shm_region *region)
{
    for (int i = 0; i < region->shm->sizes.local_size; i++) {
        if (hvd_shm_region_counter(region, i) < region->base) {
            return false;
        }
    }
    return true;
}

struct hvd_shm *hvd_shm_region_memory(const struct hvd_shm_region *region)
{
    return region->shm;
}

uint64_t hvd_shm_region_base(const struct hvd_shm_region *region)
{
    return region->base;
}

char *hvd_shm_region_slot(const struct hvd_shm_region *region,
                          enum hvd_location_kind kind, int local_rank, int slot)
{
    const struct hvd_geometry *geometry = &region->shm->sizes.geometry;
    size_t index =
        (size_t)slot + (kind == HVD_LOCATION_OUT ? (size_t)geometry->slots : 0);

    if (kind == HVD_LOCATION_LINE) {
        return region->lines[local_rank].small[slot];
    }
    return region->slots + (size_t)local_rank * region->rank_bytes +
           index * geometry->slot_bytes;
}

void hvd_shm_region_signal(struct hvd_shm_region *region)
{
    _Atomic uint64_t *counter = &region->lines[region->shm->local_rank].counter;

    atomic_store_explicit(counter, ++region->signals, memory_order_release);
    region->owes_ring = true;
}

void hvd_shm_region_ring(struct hvd_shm_region *region)
{
    if (region->owes_ring) {
        region->owes_ring = false;
        /* Pairs with the fence of a rank that falls asleep: either that rank sees the
         * signal when it checks once more, or this rank sees that it is asleep. */
        atomic_thread_fence(memory_order_seq_cst);
        ring_members(region);
    }
}

uint64_t hvd_shm_region_counter(const struct hvd_shm_region *region, int local_rank)
{
    return atomic_load_explicit(&region->lines[local_rank].counter, memory_order_acquire);
}

/* A counter that has been seen is not read again: the other rank may be writing its line
 * for the next schedule, and the line would travel between the cores once more. */
bool hvd_shm_region_await(const struct hvd_shm_region *region, int local_rank,
                          uint64_t value, int looks)
{
    const _Atomic uint64_t *counter = &region->lines[local_rank].counter;
    uint64_t *seen = &region->seen[local_rank];

    for (int look = 0; *seen < value; look++) {
        if (look == looks) {
            return false;
        }
        *seen = atomic_load_explicit(counter, memory_order_acquire);
    }
    return true;
}
