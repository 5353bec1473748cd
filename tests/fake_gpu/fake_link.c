/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the processes of the stand-in for NCCL. */
#include "tests/fake_gpu/fake_link.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void fake_link_pause(unsigned turn)
{
    const struct timespec moment = {.tv_nsec = 20000};

    if (turn < 100) {
        sched_yield();
    } else {
        nanosleep(&moment, NULL);
    }
}

int fake_link_open(struct fake_link *link, const char *name, int rank, int size,
                   const char *gpu)
{
    int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || size > FAKE_MOST_RANKS ||
        ftruncate(fd, sizeof(struct fake_shared)) != 0) {
        return -1;
    }
    link->shared =
        mmap(NULL, sizeof(struct fake_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (link->shared == MAP_FAILED) {
        return -1;
    }
    link->rank = rank;
    link->size = size;
    snprintf(link->name, sizeof(link->name), "%s", name);
    snprintf(link->shared->places[rank].gpu, FAKE_PLACE, "%s", gpu);
    atomic_fetch_add(&link->shared->joined, 1);
    return 0;
}

bool fake_link_meet(struct fake_link *link)
{
    bool is_aborted = false;

    for (unsigned turn = 0;
         atomic_load(&link->shared->joined) < link->size && !is_aborted; turn++) {
        is_aborted = atomic_load(&link->is_aborted);
        fake_link_pause(turn);
    }
    if (link->rank == 0 || is_aborted) {
        shm_unlink(link->name);
    }
    return !is_aborted;
}

int fake_link_duplicate(const struct fake_link *link)
{
    for (int i = 0; i < link->size; i++) {
        for (int j = i + 1; j < link->size; j++) {
            if (strcmp(link->shared->places[i].gpu, link->shared->places[j].gpu) == 0) {
                return i;
            }
        }
    }
    return -1;
}

void fake_link_close(struct fake_link *link)
{
    munmap(link->shared, sizeof(struct fake_shared));
}

bool fake_link_barrier(struct fake_link *link)
{
    struct fake_shared *shared = link->shared;

    atomic_store(&shared->places[link->rank].phase, ++link->phase);
    for (int i = 0; i < link->size; i++) {
        for (unsigned turn = 0; atomic_load(&shared->places[i].phase) < link->phase;
             turn++) {
            if (atomic_load(&link->is_aborted)) {
                return false;
            }
            fake_link_pause(turn);
        }
    }
    return !atomic_load(&link->is_aborted);
}

bool fake_link_agree(struct fake_link *link, uint64_t call)
{
    bool is_same = true;

    link->shared->places[link->rank].call = call;
    if (!fake_link_barrier(link)) {
        return false;
    }
    for (int i = 0; i < link->size; i++) {
        is_same &= link->shared->places[i].call == call;
    }
    return fake_link_barrier(link) && is_same;
}
