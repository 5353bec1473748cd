/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that outlive a rank of their job and print what they were told of its death,
 * for the tables of victims. As tap.h, for one source of a program. */
#ifndef HVD_TEST_SURVIVOR_H
#define HVD_TEST_SURVIVOR_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/hvd.h"

static double survivor_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* hvd_init; returns this rank. The launcher ends the job by SIGTERM, which waits until
 * the program has printed all. */
__attribute__((unused)) static int survivor_init(void)
{
    struct hvd_error err = {0};

    signal(SIGTERM, SIG_IGN);
    if (hvd_init(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return hvd_rank();
}

/* Waits for a request that was started with this status, and frees it. */
__attribute__((unused)) static int survivor_wait(int status, struct hvd_request *request,
                                                 struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* The call that was under way when the rank died, since `start`. */
static void survivor_pending(double start, int status, const struct hvd_error *err)
{
    printf("pending %d: %d %.1f %s\n", hvd_rank(), status, survivor_now() - start,
           err->text);
}

/* The next call. Leaves the job and returns the exit status of the program. */
static int survivor_next(int status, const struct hvd_error *err)
{
    printf("next %d: %d %s\n", hvd_rank(), status, err->text);
    fflush(stdout);
    hvd_shutdown();
    return 3;
}

#endif
