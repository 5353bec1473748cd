/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share: staging slots and counters.
 *
 *   [ lines of rank 0 | lines of rank 1 | ... ][ slots of rank 0 | slots of rank 1 | ... ]
 *
 * A rank's part of the slots starts on a page, so that each rank can place its own. */
#include "collectives/shm.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Two cache lines each: adjacent-line prefetch would make one line's writer disturb the
 * reader of the next. */
struct lines {
    _Alignas(128) _Atomic uint64_t counter;
    _Alignas(128) _Atomic uint32_t asleep;
};

struct hvd_shm {
    char *base;
    size_t bytes;
    size_t slots_at; /* where the slots of local rank 0 begin */
    size_t rank_bytes; /* of the slots of one rank */
    struct lines *lines;
    struct hvd_geometry geometry;
    int local_rank;
    int local_size;
    const int *doorbells;
};

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void measure(struct hvd_shm *shm, int local_size,
                    const struct hvd_geometry *geometry)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    shm->geometry = *geometry;
    shm->local_size = local_size;
    shm->slots_at = round_up((size_t)local_size * sizeof(struct lines), page);
    shm->rank_bytes = round_up(2 * (size_t)geometry->slots * geometry->slot_bytes, page);
    shm->bytes = shm->slots_at + (size_t)local_size * shm->rank_bytes;
}

int hvd_shm_open(int local_size, const struct hvd_geometry *geometry,
                 struct hvd_error *err)
{
    struct hvd_shm shm = {0};
    int fd = memfd_create("hvd", MFD_CLOEXEC);

    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create shared memory (memfd): %m");
    }
    measure(&shm, local_size, geometry);
    if (ftruncate(fd, (off_t)shm.bytes) != 0) {
        hvd_fail(err, HVD_ERR_SYS, "cannot size %zu bytes of shared memory: %m",
                 shm.bytes);
        close(fd);
        return HVD_ERR_SYS;
    }
    return fd;
}

/* Memory that is missing must be an error now and not a SIGBUS in the middle of training.
 * fallocate takes it by the memory policy of the calling thread. */
static int back_with_memory(const struct hvd_shm *shm, int fd, struct hvd_error *err)
{
    off_t begin = (off_t)(shm->slots_at + (size_t)shm->local_rank * shm->rank_bytes);

    if ((shm->local_rank == 0 && fallocate(fd, 0, 0, (off_t)shm->slots_at) != 0) ||
        fallocate(fd, 0, begin, (off_t)shm->rank_bytes) != 0) {
        return hvd_fail(
            err, HVD_ERR_NOMEM,
            "no %zu bytes of shared memory for this rank: %m; ask the job for "
            "more memory",
            shm->rank_bytes);
    }
    return 0;
}

int hvd_shm_create(int fd, int local_rank, int local_size,
                   const struct hvd_geometry *geometry, const int *doorbells,
                   struct hvd_shm **out, struct hvd_error *err)
{
    struct hvd_shm *shm = calloc(1, sizeof(*shm));
    int status;

    if (shm == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    measure(shm, local_size, geometry);
    shm->local_rank = local_rank;
    shm->doorbells = doorbells;
    status = back_with_memory(shm, fd, err);
    if (status == 0) {
        shm->base = mmap(NULL, shm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shm->base == MAP_FAILED) {
            status = hvd_fail(err, HVD_ERR_NOMEM,
                              "cannot map %zu bytes of shared memory: %m", shm->bytes);
        }
    }
    if (status != 0) {
        free(shm);
        return status;
    }
    shm->lines = (struct lines *)shm->base;
    *out = shm;
    return 0;
}

void hvd_shm_destroy(struct hvd_shm *shm)
{
    if (shm != NULL) {
        munmap(shm->base, shm->bytes);
        free(shm);
    }
}

char *hvd_shm_slot(const struct hvd_shm *shm, enum hvd_place_kind kind, int local_rank,
                   int slot)
{
    size_t index =
        (size_t)slot + (kind == HVD_PLACE_OUT ? (size_t)shm->geometry.slots : 0);

    return shm->base + shm->slots_at + (size_t)local_rank * shm->rank_bytes +
           index * shm->geometry.slot_bytes;
}

void hvd_shm_signal(struct hvd_shm *shm)
{
    const uint64_t one = 1;
    ssize_t wrote HVD_UNUSED;

    /* Sequentially consistent, as is the store in set_asleep: either the sleeper sees this
     * signal when it looks once more, or this rank sees it asleep. */
    atomic_fetch_add(&shm->lines[shm->local_rank].counter, 1);
    for (int i = 0; i < shm->local_size; i++) {
        if (i != shm->local_rank && atomic_load(&shm->lines[i].asleep) != 0) {
            wrote = write(shm->doorbells[i], &one, sizeof(one));
        }
    }
}

uint64_t hvd_shm_counter(const struct hvd_shm *shm, int local_rank)
{
    return atomic_load_explicit(&shm->lines[local_rank].counter, memory_order_acquire);
}

void hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep)
{
    atomic_store(&shm->lines[shm->local_rank].asleep, asleep ? 1 : 0);
}
