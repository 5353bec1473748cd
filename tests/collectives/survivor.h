/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that survive the death of another rank of their job and print the errors they
 * got, for the tables of faults. Include this in one source of a program only, as tap.h.
 */
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

/* Calls hvd_init; returns this rank. Ignores the SIGTERM with which the launcher ends the
 * job, so that the program can print everything. */
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

/* Waits for a request whose start returned `status`, and frees it. */
__attribute__((unused)) static int survivor_wait(int status, struct hvd_request *request,
                                                 struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* Prints the result of the call that was in flight, since `start`, when the rank died. */
static void survivor_pending(double start, int status, const struct hvd_error *err)
{
    printf("pending %d: %d %.1f %s\n", hvd_rank(), status, survivor_now() - start,
           err->text);
}

/* Prints the result of the next call. Leaves the job and returns the program's exit
 * status. */
static int survivor_next(int status, const struct hvd_error *err)
{
    printf("next %d: %d %s\n", hvd_rank(), status, err->text);
    fflush(stdout);
    hvd_shutdown();
    return 3;
}

#endif
