/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 returns from a wait and then calls nothing of hvd. Collectives of the other
 * ranks must still end, although rank 0 takes part in the agreement on them. The other
 * ranks count rounds in shared memory, so that rank 0 knows when they are done. Runs as
 * each rank of a job of three or more on one node; rank 0 prints TAP. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/core/sets.h"
#include "tests/tap.h"

enum {
    ROUNDS = 20,
    MEETINGS = 3, /* collectives of all ranks, before rank 0 goes away */
    LIMIT_S = 20 /* far above what a round takes on a loaded machine */
};

static float data[SETS_ELEMENTS];

/* Maps a counter that the ranks of one launcher share. Ends the process if that fails. */
static atomic_int *open_counter(char *path, size_t bytes)
{
    void *memory = MAP_FAILED;
    int fd;

    snprintf(path, bytes, "/dev/shm/hvd-away-%d", (int)getppid());
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, sizeof(atomic_int)) == 0) {
        memory =
            mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(fd);
    return memory;
}

/* Sums a tensor over all ranks, so that they wait for each other. */
static bool meet(void)
{
    const unsigned all = (1U << hvd_size()) - 1;

    return sets_finish_sum(sets_start_sum(HVD_SET_GLOBAL, "all", data), all, data);
}

/* Creates a set of all ranks but rank 0, sums in it, and removes it. */
static bool work_without_it(int round)
{
    const unsigned others = (1U << hvd_size()) - 2;
    char name[32];
    bool good;
    int set;

    snprintf(name, sizeof(name), "round %d", round);
    set = sets_finish(sets_start(others, name));
    good = sets_finish_sum(sets_start_sum(set, name, data), others, data);
    sets_remove(set);
    return good;
}

/* Waits until the other ranks have finished this round. Returns false after the time
 * limit. */
static bool stay_away(const atomic_int *rounds, int round)
{
    const time_t limit = time(NULL) + LIMIT_S;

    while (atomic_load(rounds) < round && time(NULL) < limit) {
        sched_yield();
    }
    return atomic_load(rounds) >= round;
}

int main(void)
{
    const int rank = call_init();
    bool has_ended = true, good = true;
    atomic_int *rounds;
    char path[64];

    rounds = open_counter(path, sizeof(path));
    call_barrier();
    unlink(path);
    for (int round = 1; round <= ROUNDS && has_ended; round++) {
        for (int i = 0; i < MEETINGS; i++) {
            good = meet() && good;
        }
        if (rank == 0) {
            has_ended = stay_away(rounds, round);
        } else {
            good = work_without_it(round) && good;
        }
        if (rank == 1) {
            atomic_store(rounds, round);
        }
    }
    hvd_shutdown();
    if (rank != 0) {
        return good ? 0 : 1;
    }
    tap_ok(has_ended, "a rank that calls nothing answers the others");
    tap_ok(good, "the sums of all ranks are right");
    return tap_done();
}
