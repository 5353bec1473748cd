/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share.
 *
 *   [ line of rank 0 | of rank 1 | ... ][ extra ][ reserved ][ region 0 ][ region 1 ] ...
 *
 * Each part starts on a page. */
#include "collectives/transport/shm/shm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_pages.h"
#include "collectives/transport/shm/shm_state.h"
#include "gpu_binding/base/fork_close.h"

static void measure_parts(struct hvd_shm *shm, const struct hvd_shm_sizes *sizes)
{
    shm->sizes = *sizes;
    shm->extra_at =
        hvd_shm_round_to_page((size_t)sizes->local_size * sizeof(struct hvd_shm_line));
    shm->node_bytes = shm->extra_at + hvd_shm_round_to_page(sizes->extra_bytes);
    shm->regions_at = shm->node_bytes + sizes->reserved_bytes;
}

int hvd_shm_open(const struct hvd_shm_sizes *sizes, struct hvd_error *err)
{
    struct hvd_shm shm = {0};
    int fd = memfd_create("hvd", MFD_CLOEXEC);

    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create shared memory (memfd): %m");
    }
    measure_parts(&shm, sizes);
    if (hvd_shm_back(fd, 0, shm.node_bytes, err) != 0) {
        close(fd);
        return HVD_ERR_NOMEM;
    }
    return fd;
}

static int map_node(struct hvd_shm *shm, struct hvd_error *err)
{
    void *node =
        mmap(NULL, shm->node_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);

    if (node == MAP_FAILED) {
        return hvd_fail(err, HVD_ERR_NOMEM, "cannot map %zu bytes of shared memory: %m",
                        shm->node_bytes);
    }
    shm->lines = node;
    return 0;
}

int hvd_shm_create(int fd, int local_rank, const struct hvd_shm_sizes *sizes,
                   const int *eventfds, struct hvd_shm **out, struct hvd_error *err)
{
    struct hvd_shm *shm = calloc(1, sizeof(*shm));
    int status;

    if (shm == NULL || hvd_fork_close_add(fd) != 0) {
        free(shm);
        close(fd);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    measure_parts(shm, sizes);
    shm->fd = fd;
    shm->local_rank = local_rank;
    shm->eventfds = eventfds;
    status = map_node(shm, err);
    if (status != 0) {
        hvd_shm_destroy(shm);
        return status;
    }
    hvd_shm_introduce(shm);
    *out = shm;
    return 0;
}

void hvd_shm_destroy(struct hvd_shm *shm)
{
    if (shm == NULL) {
        return;
    }
    hvd_shm_take_leave(shm);
    free(shm->extents);
    if (shm->lines != NULL) {
        munmap(shm->lines, shm->node_bytes);
    }
    hvd_fork_close_now(shm->fd);
    free(shm);
}

char *hvd_shm_extra(const struct hvd_shm *shm)
{
    return (char *)shm->lines + shm->extra_at;
}

int hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                         struct hvd_error *err)
{
    const size_t begin = shm->node_bytes + at;
    int status = hvd_shm_back(shm->fd, begin, bytes, err);
    void *map;

    if (status != 0) {
        return status;
    }
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, (off_t)begin);
    if (map == MAP_FAILED) {
        return hvd_fail(err, HVD_ERR_NOMEM, "cannot map %zu bytes of shared memory: %m",
                        bytes);
    }
    *out = map;
    return 0;
}
