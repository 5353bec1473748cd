/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer that needs its only cpu: what it submits between two other calls is left to its own wait
 * for a while, but not for ever. HOROVOD_CYCLE_TIME says otherwise. Prints TAP. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    ROUNDS = 20,
    LIMIT_MS = 20000, /* far above what it takes on a loaded machine */
    LEFT_MS = 50 /* far above what the thread takes that looks every cycle */
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int start_sum(float *value, struct hvd_request **request)
{
    struct hvd_tensor tensor = call_tensor("sum", HVD_FLOAT32, NULL, 0, value, value);

    return hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, NULL);
}

/* Milliseconds until the second of two sums ends, for which nobody waits; negative: it does not. */
static int64_t time_unattended(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    float first = 1, second = 2;
    struct hvd_request *request;
    struct hvd_error err = {0};
    int64_t began, took = 0;

    call_finish(start_sum(&first, &request), &request, &err);
    hvd_request_free(request);
    began = now_ms();
    if (start_sum(&second, &request) != 0) {
        return -1;
    }
    while (hvd_wait_for(request, 0, NULL) == HVD_INPROGRESS && took < LIMIT_MS) {
        nanosleep(&pause, NULL);
        took = now_ms() - began;
    }
    call_finish(0, &request, &err);
    hvd_request_free(request);
    return took < LIMIT_MS ? took : -1;
}

static void need_one_cpu(void)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

int main(void)
{
    const bool has_cycle = getenv("HOROVOD_CYCLE_TIME") != NULL;
    int left = 0, stalls = 0;

    need_one_cpu();
    call_init();
    /* Whoever is kept from the cpu between the two sums does not doze: so several times. */
    for (int i = 0; i < ROUNDS; i++) {
        int64_t took = time_unattended();

        stalls += took < 0 ? 1 : 0;
        left += took >= LEFT_MS ? 1 : 0;
    }
    hvd_shutdown();
    printf("# %d of %d were left alone\n", left, ROUNDS);
    tap_ok(stalls == 0, "what nobody waits for ends");
    if (has_cycle) {
        tap_ok(left < ROUNDS / 2, "within the cycle time that was set");
    } else {
        tap_ok(left > 0, "the thread leaves its only cpu to the trainer");
    }
    return tap_done();
}
