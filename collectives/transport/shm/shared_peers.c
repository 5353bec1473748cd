/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of shared memory of the node's other ranks, mapped here. */
#include "collectives/transport/shm/shared_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_state.h"
#include "gpu_binding/base/log.h"

enum {
    KEPT = 64, /* pieces of one rank */
};

struct mapping {
    uint64_t number; /* 0: none */
    char *map;
    size_t bytes;
};

struct hvd_shared_peer {
    struct mapping kept[KEPT];
    int next; /* to be replaced */
};

static void unmap(struct mapping *mapping)
{
    if (mapping->number != 0) {
        munmap(mapping->map, mapping->bytes);
    }
    *mapping = (struct mapping){0};
}

void hvd_shared_unmap(struct hvd_shm *shm)
{
    for (int i = 0; shm->peers != NULL && i < shm->sizes.local_size; i++) {
        for (int j = 0; j < KEPT; j++) {
            unmap(&shm->peers[i].kept[j]);
        }
    }
    free(shm->peers);
    shm->peers = NULL;
}

/* Of a piece that could not be opened or mapped, with errno: its owner may be gone. */
static int failure(const struct hvd_shm *shm, int local_rank, const char *reason)
{
    int found = errno;

    if (!hvd_shm_is_there(shm, local_rank)) {
        return HVD_INPROGRESS;
    }
    errno = found;
    hvd_log(HVD_LOG_ERROR, "the shared memory of local rank %d cannot be used: %s: %m",
            local_rank, reason);
    return HVD_ERR_SYS;
}

/* The piece begins with its number; else the descriptor belongs to something else by now. */
static int map_file(const struct hvd_shm *shm, int local_rank, int file,
                    struct mapping *mapping)
{
    uint64_t number = 0;
    struct stat facts;

    errno = ENOENT;
    if (fstat(file, &facts) != 0 ||
        pread(file, &number, sizeof(number), 0) != (ssize_t)sizeof(number) ||
        number != mapping->number) {
        return failure(shm, local_rank,
                       "another file is where it was; free it when no request uses it");
    }
    mapping->bytes = (size_t)facts.st_size;
    /* Now, because later is in the midst of adding up. */
    mapping->map = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, file, 0);
    if (mapping->map == MAP_FAILED) {
        return failure(
            shm, local_rank,
            "it cannot be mapped; raise the limit on address space (ulimit -v)");
    }
    madvise(mapping->map, mapping->bytes, MADV_DONTFORK);
    return 0;
}

static int open_descriptor(pid_t pid, int64_t fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%lld", (int)pid, (long long)fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static int open_piece(const struct hvd_shm *shm, int local_rank,
                      const struct hvd_shared_place *place, struct mapping *mapping)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    struct mapping opened = {.number = place->number};
    int file = open_descriptor(atomic_load(&line->pid), place->fd);
    int status;

    if (file < 0) {
        return failure(
            shm, local_rank,
            "its descriptor cannot be opened in /proc; raise the limit on open "
            "files (ulimit -n) if there are too many");
    }
    status = map_file(shm, local_rank, file, &opened);
    close(file);
    if (status == 0) {
        unmap(mapping);
        *mapping = opened;
    }
    return status;
}

bool hvd_shared_can_map(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    int file = open_descriptor(atomic_load(&line->pid), line->fd);
    struct stat theirs, ours;
    bool can = file >= 0 && fstat(file, &theirs) == 0 && fstat(shm->fd, &ours) == 0 &&
               theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;

    if (!can) {
        hvd_log(HVD_LOG_DEBUG, "cannot map the shared memory of local rank %d: %m",
                local_rank);
    }
    if (file >= 0) {
        close(file);
    }
    return can;
}

static struct mapping *find(struct hvd_shared_peer *peer, uint64_t number)
{
    for (int i = 0; i < KEPT; i++) {
        if (peer->kept[i].number == number) {
            return &peer->kept[i];
        }
    }
    return NULL;
}

int hvd_shared_map(struct hvd_shm *shm, int local_rank,
                   const struct hvd_shared_place *place, size_t bytes, char **out)
{
    struct mapping *mapping;
    struct hvd_shared_peer *peer;
    int status = 0;

    if (shm->peers == NULL) {
        shm->peers = calloc((size_t)shm->sizes.local_size, sizeof(shm->peers[0]));
    }
    if (shm->peers == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (place->number == 0) {
        errno = EFAULT;
        return failure(shm, local_rank,
                       "it was freed before the request that uses it began");
    }
    peer = &shm->peers[local_rank];
    mapping = find(peer, place->number);
    if (mapping == NULL) {
        mapping = &peer->kept[peer->next];
        status = open_piece(shm, local_rank, place, mapping);
        peer->next = status == 0 ? (peer->next + 1) % KEPT : peer->next;
    }
    if (status != 0) {
        return status;
    }
    if (place->offset > mapping->bytes || bytes > mapping->bytes - place->offset) {
        hvd_log(
            HVD_LOG_ERROR,
            "local rank %d says that %zu bytes are at %llu of its shared memory, which "
            "has %zu",
            local_rank, bytes, (unsigned long long)place->offset, mapping->bytes);
        return HVD_ERR_SYS;
    }
    *out = mapping->map + place->offset;
    return 0;
}

bool hvd_shared_may_store(const struct hvd_shm *shm)
{
    for (int i = 0; i < shm->sizes.local_size; i++) {
        if (atomic_load(&hvd_shm_line_of(shm, i)->hides) != 0) {
            return false;
        }
    }
    return true;
}

/* Either this rank sees that another one hides, or that one sees this one write. */
bool hvd_shared_begin_stores(struct hvd_shm *shm)
{
    hvd_shm_say_writes(shm, HVD_SHM_WRITES_TO_ALL);
    if (!hvd_shared_may_store(shm)) {
        hvd_shm_say_writes(shm, 0);
        return false;
    }
    return true;
}

void hvd_shared_end_stores(struct hvd_shm *shm)
{
    hvd_shm_say_writes(shm, 0);
}
