/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank dies: victim RANK [sleep]. The others print what they are told.
 * With "sleep" the rank says so and stays alive, for tests that take its node away.
 *
 *   pending N: STATUS SECONDS TEXT   the call that was under way when the rank died
 *   next N: STATUS TEXT              the call after it
 *
 * SECONDS is measured from the victim's last sign of life, an allreduce that ended. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collectives/hvd.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int allreduce(const char *name, double *value, struct hvd_error *err)
{
    struct hvd_tensor tensor = {.name = name,
                                .input = value,
                                .output = value,
                                .dtype = HVD_FLOAT64,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    struct hvd_error err = {0};
    double value = 1, start;
    int rank, status;

    signal(SIGTERM, SIG_IGN); /* the launcher ends the job; first we want to speak */
    if (hvd_init(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    rank = hvd_rank();
    status = allreduce("life", &value, &err);
    start = now();
    if (rank == victim && argc > 2) {
        printf("sleeps\n");
        fflush(stdout);
        pause();
    } else if (rank == victim) {
        kill(getpid(), SIGKILL);
    }
    /* The victim may die so soon that the first call does not end here any more. */
    if (status == 0) {
        status = allreduce("pending", &value, &err);
    }
    printf("pending %d: %d %.1f %s\n", rank, status, now() - start, err.text);
    status = allreduce("next", &value, &err);
    printf("next %d: %d %s\n", rank, status, err.text);
    fflush(stdout);
    hvd_shutdown();
    return 3;
}
