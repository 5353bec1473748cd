/* SPDX-License-Identifier: Apache-2.0 */
/* A request ends although no thread waits for it: the last thread that drove the rank
 * (progress.h) has left the work to the progress thread. Rank 0 prints TAP; a rank whose
 * request does not end exits with status 1. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    ROUNDS = 1500,
    LIMIT_S = 20 /* far above what a round takes on a loaded machine */
};

static float kept, late;
static struct hvd_request *late_request;
static int late_status;
static atomic_bool is_started;

static int start_sum(const char *name, float *value, struct hvd_request **request)
{
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, NULL, 0, value, value);

    return hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, NULL);
}

static void *start_late(void *arg)
{
    const int *delay_us = arg;

    usleep((useconds_t)*delay_us);
    late_status = start_sum("late", &late, &late_request);
    atomic_store(&is_started, true);
    return NULL;
}

/* Whether the request ends although this thread does not drive the rank: a call of
 * hvd_wait_for with a time of 0 only looks. */
static bool ends_by_itself(struct hvd_request *request)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    time_t limit = time(NULL) + LIMIT_S;

    while (hvd_wait_for(request, 0, NULL) == HVD_INPROGRESS) {
        if (time(NULL) > limit) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* This thread drives the rank in hvd_test, at least some of the time, while another
 * thread starts a request. After that, neither of the two drives. */
static bool play_round(int round)
{
    struct hvd_request *request;
    struct hvd_error err = {0};
    int delay_us = 500 + round * 37 % 500;
    pthread_t thread;
    bool good;

    call_barrier();
    atomic_store(&is_started, false);
    if (start_sum("kept", &kept, &request) != 0 ||
        pthread_create(&thread, NULL, start_late, &delay_us) != 0) {
        return false;
    }
    while (!atomic_load(&is_started)) {
        hvd_test(request, NULL);
    }
    pthread_join(thread, NULL);
    good = late_status == 0 && ends_by_itself(late_request);
    call_finish(0, &request, &err);
    hvd_request_free(request);
    hvd_request_free(late_request);
    return good;
}

int main(void)
{
    int rank = call_init();
    int stalls = 0;

    for (int i = 0; i < ROUNDS && stalls == 0; i++) {
        stalls += play_round(i) ? 0 : 1;
    }
    hvd_shutdown();
    if (rank == 0) {
        tap_ok(stalls == 0, "a request ends although no caller drives after its start");
        return tap_done();
    }
    return stalls != 0;
}
