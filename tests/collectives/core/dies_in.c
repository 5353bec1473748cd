/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank ends inside a collective: dies_in RANK COLLECTIVE HOW.
 *
 *   COLLECTIVE  allreduce, grouped, adasum, allgather, broadcast, alltoall,
 *               reducescatter, barrier, create (a process set)
 *   HOW         kill (SIGKILL), segv (SIGSEGV), _exit (status 0 without hvd_shutdown),
 *               exit (status 0, after the handlers of atexit)
 *
 * All ranks repeat the collective. A thread of the victim ends the victim's process in
 * the middle of one. For barrier and create, the victim ends without starting the
 * collective. The other ranks print, in the format of victim.c:
 *
 *   pending N: STATUS SECONDS TEXT   the call that was in flight; SECONDS since its start
 *   next N: STATUS TEXT              the call after it */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/survivor.h"

enum {
    /* Floats in each tensor, for some milliseconds of work; an alltoall of 2, 3 or 4
     * ranks divides them evenly. */
    ROWS = 12 << 16,
    GROUP = 3,
    MOST_RANKS = 8,
    DELAY_US = 30000,
};

static float input[GROUP][ROWS], output[GROUP][ROWS];
static const char *how;

static void die(void)
{
    if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(how, "segv") == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would be slow */
        raise(SIGSEGV);
    } else if (strcmp(how, "exit") == 0) {
        exit(0);
    }
    _exit(0);
}

static void *end_later(void *unused)
{
    usleep(DELAY_US);
    die();
    return unused;
}

/* Starts the creation of a process set of all ranks. */
static int create(const char *label, struct hvd_request **request, struct hvd_error *err)
{
    int ranks[MOST_RANKS], size = hvd_size();

    for (int i = 0; i < size; i++) {
        ranks[i] = i;
    }
    return hvd_set_create_start(ranks, size, label, request, err);
}

/* Starts the collective `what` of a tensor with this name. "grouped" has several tensors
 * in one request: name/0, name/1 and so on. */
static int start(const char *what, const char *name, struct hvd_request **request,
                 struct hvd_error *err)
{
    static const int64_t shape[] = {ROWS};
    static char names[GROUP][64];
    bool is_grouped = strcmp(what, "grouped") == 0;
    struct hvd_tensor tensors[GROUP];

    for (int i = 0; i < GROUP; i++) {
        snprintf(names[i], sizeof(names[i]), is_grouped ? "%s/%d" : "%s", name, i);
        tensors[i] = (struct hvd_tensor){.name = names[i],
                                         .input = input[i],
                                         .output = output[i],
                                         .shape = shape,
                                         .ndim = 1,
                                         .dtype = HVD_FLOAT32,
                                         .device = HVD_DEVICE_CPU};
    }
    if (strcmp(what, "allreduce") == 0 || is_grouped) {
        return hvd_allreduce_start(tensors, is_grouped ? GROUP : 1, HVD_SUM, 1, 1, 0,
                                   request, err);
    }
    if (strcmp(what, "adasum") == 0) {
        return hvd_allreduce_start(tensors, 1, HVD_ADASUM, 1, 1, 0, request, err);
    }
    if (strcmp(what, "allgather") == 0) {
        return hvd_allgather_start(tensors, 1, 0, request, err);
    }
    if (strcmp(what, "broadcast") == 0) {
        return hvd_broadcast_start(tensors, 0, 0, request, err);
    }
    if (strcmp(what, "alltoall") == 0) {
        return hvd_alltoall_start(tensors, NULL, 0, 0, request, err);
    }
    if (strcmp(what, "reducescatter") == 0) {
        return hvd_reducescatter_start(tensors, 1, HVD_SUM, 1, 1, 0, request, err);
    }
    return strcmp(what, "create") == 0 ? create(name, request, err)
                                       : hvd_barrier_start(0, request, err);
}

static int call(const char *what, const char *name, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = start(what, name, &request, err);

    return survivor_wait(status, request, err);
}

static void begin_to_end(const char *what)
{
    pthread_t thread;

    if (strcmp(what, "barrier") == 0 || strcmp(what, "create") == 0) {
        usleep(DELAY_US);
        die();
    } else if (pthread_create(&thread, NULL, end_later, NULL) != 0) {
        die();
    }
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    const char *what = argc > 2 ? argv[2] : "allreduce";
    struct hvd_error err = {0};
    double started;
    int rank, status;

    how = argc > 3 ? argv[3] : "kill";
    rank = survivor_init();
    status = call(what, "first", &err); /* all ranks are connected */
    if (rank == victim) {
        begin_to_end(what);
    }
    do {
        started = survivor_now();
        if (status == 0) {
            status = call(what, "pending", &err);
        }
    } while (status == 0);
    survivor_pending(started, status, &err);
    status = call(what, "next", &err);
    return survivor_next(status, &err);
}
