/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank dies while the others read its memory or write there, and it theirs:
 * reached RANK [alltoall]. It gives the data of large broadcasts until a timer kills it, or all give
 * each other parts of theirs. The others print what they are told:
 *
 *   pending N: STATUS SECONDS TEXT   the call that was under way
 *   next N: STATUS TEXT              the call after it
 *
 * SECONDS is how long that call took. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "tests/collectives/calls.h"

enum {
    BYTES = 33 << 20, /* three parts */
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int begin(bool is_alltoall, char *data, int root, struct hvd_request **request,
                 struct hvd_error *err)
{
    static const int64_t bytes = BYTES;
    struct hvd_tensor tensor = call_tensor("large", HVD_UINT8, &bytes, 1, data, data);

    return is_alltoall ? hvd_alltoall_start(&tensor, NULL, 0, 0, request, err)
                       : hvd_broadcast_start(&tensor, root, 0, request, err);
}

static int move(bool is_alltoall, char *data, int root, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = begin(is_alltoall, data, root, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
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
    const bool is_alltoall = argc > 2;
    char *data = calloc(1, BYTES);
    struct hvd_error err = {0};
    double start = 0;
    int rank, status = 0;

    signal(SIGTERM, SIG_IGN); /* the launcher ends the job; first we want to speak */
    rank = call_init();
    if (rank == victim) {
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    while (status == 0) {
        start = now();
        status = move(is_alltoall, data, victim, &err);
    }
    printf("pending %d: %d %.1f %s\n", rank, status, now() - start, err.text);
    status = move(is_alltoall, data, victim, &err);
    printf("next %d: %d %s\n", rank, status, err.text);
    fflush(stdout);
    hvd_shutdown();
    free(data);
    return 3;
}
