/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank dies while ranks read and write each other's memory: reached
 * RANK [alltoall]. All ranks run large broadcasts, whose root is RANK, and sums; with
 * "alltoall", they run alltoalls instead. A timer kills rank RANK. When the call of
 * another rank fails, that rank at once makes the memory of the call inaccessible. It
 * prints the errors:
 *
 *   pending N: STATUS SECONDS TEXT   the call that was in flight
 *   next N: STATUS TEXT              the call after it
 *
 * SECONDS is how long the pending call took. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/survivor.h"

enum {
    BYTES = 33 << 20, /* more than ranks copy at a time */
};

/* Starts a broadcast and waits for it. */
static int broadcast(char *data, int64_t bytes, int root, struct hvd_error *err)
{
    struct hvd_tensor tensor = call_tensor("large", HVD_UINT8, &bytes, 1, data, data);
    struct hvd_request *request = NULL;
    int status = hvd_broadcast_start(&tensor, root, 0, &request, err);

    return survivor_wait(status, request, err);
}

static int exchange(char *data, struct hvd_error *err)
{
    static const int64_t bytes = BYTES;
    struct hvd_tensor tensor = call_tensor("parts", HVD_UINT8, &bytes, 1, data, NULL);
    struct hvd_request *request = NULL;
    int status = hvd_alltoall_start(&tensor, NULL, 0, 0, &request, err);

    return survivor_wait(status, request, err);
}

static int reduce(char *data, struct hvd_error *err)
{
    static const int64_t bytes = BYTES;
    struct hvd_tensor tensor = call_tensor("sum", HVD_UINT8, &bytes, 1, data, data);
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    return survivor_wait(status, request, err);
}

static void die(int number)
{
    (void)number;
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 300000}};
    const int victim = argc > 1 ? atoi(argv[1]) : 0;
    const bool is_alltoall = argc > 2 && strcmp(argv[2], "alltoall") == 0;
    char *data =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char other[64] = {0};
    struct hvd_error err = {0};
    double start = 0;
    int rank, status = 0;

    rank = survivor_init();
    if (rank == victim) {
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (int i = 0; status == 0; i++) {
        start = survivor_now();
        status = is_alltoall  ? exchange(data, &err)
                 : i % 2 == 0 ? broadcast(data, BYTES, victim, &err)
                              : reduce(data, &err);
    }
    mprotect(data, BYTES, PROT_NONE); /* the address stays reserved */
    survivor_pending(start, status, &err);
    status = broadcast(other, sizeof(other), victim, &err);
    status = survivor_next(status, &err);
    munmap(data, BYTES);
    return status;
}
