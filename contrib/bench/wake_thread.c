/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs that the progress thread has to be woken.
 *
 *   hvdrun -np 2 wake_thread [TURNS [BYTES]]
 *
 * The ranks of one node start an allreduce (float32, Sum; default 8 bytes) at the same moment, when
 * nothing has been under way for 20 ms. Printed: how long after that moment the last rank has its
 * result, median over TURNS (default 200), when the caller
 *   - waits for it, and does the work itself
 *   - sleeps, so that the cpu is free and the progress thread has to be woken
 *   - computes on: then the thread has to get the cpu from it, if the rank has no other. Linux from
 *     6.6 on lets the caller go on for up to a slice, and from 6.13 on for up to a tick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "contrib/bench/median.h"

enum {
    WARM_UP = 60,
    NS = 1000000000
};

static const int64_t idle_ns = 20000000;
static const int64_t early_ns = 300000; /* awake, so that no rank is late */
static const int64_t look_ns = 5000;

enum caller {
    WAITS,
    SLEEPS,
    COMPUTES,
};

static int64_t elements;
static float *data;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)NS + now.tv_nsec;
}

static void compute(int64_t duration_ns)
{
    int64_t end = now_ns() + duration_ns;

    while (now_ns() < end) {
    }
}

static void check(int status, const struct hvd_error *err)
{
    if (status != 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(1);
    }
}

static struct hvd_request *start(const char *name, void *values, enum hvd_dtype dtype,
                                 int64_t count, enum hvd_op op)
{
    struct hvd_tensor tensor = {.name = name,
                                .input = values,
                                .output = values,
                                .shape = &count,
                                .ndim = 1,
                                .dtype = dtype,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    check(hvd_allreduce_start(&tensor, 1, op, 1, 1, HVD_SET_GLOBAL, &request, &err),
          &err);
    return request;
}

static void sleep_for(int64_t duration_ns)
{
    struct timespec duration = {.tv_nsec = duration_ns};

    nanosleep(&duration, NULL);
}

static void finish(struct hvd_request *request, enum caller caller)
{
    struct hvd_error err = {0};
    int status = caller == WAITS ? hvd_wait(request, &err) : HVD_INPROGRESS;

    while (status == HVD_INPROGRESS) {
        caller == SLEEPS ? sleep_for(look_ns) : compute(look_ns);
        status = hvd_wait_for(request, 0, &err); /* only looks */
    }
    check(status, &err);
    hvd_request_free(request);
}

static int64_t greatest(const char *name, int64_t value)
{
    finish(start(name, &value, HVD_INT64, 1, HVD_MAX), WAITS);
    return value;
}

/* Seconds from the common start to the last rank's end. */
static double time_one(enum caller caller)
{
    int64_t begin = greatest("begin", now_ns()) + idle_ns;
    struct timespec awake = {.tv_sec = (begin - early_ns) / NS,
                             .tv_nsec = (begin - early_ns) % NS};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &awake, NULL);
    compute(begin - now_ns());
    finish(start("data", data, HVD_FLOAT32, elements, HVD_SUM), caller);
    return (double)greatest("end", now_ns() - begin) / NS;
}

static void measure(const char *what, enum caller caller, int turns)
{
    double *seconds = calloc((size_t)turns, sizeof(seconds[0]));

    for (int i = 0; seconds != NULL && i < turns; i++) {
        seconds[i] = time_one(caller);
        memset(data, 0, (size_t)elements * sizeof(data[0]));
    }
    if (hvd_rank() == 0 && seconds != NULL) {
        printf("%-40s %8.1f us\n", what, median(seconds, turns) * 1e6);
    }
    free(seconds);
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 200;
    struct hvd_error err = {0};

    elements = (argc > 2 ? atoll(argv[2]) : 8) / (int64_t)sizeof(data[0]);
    data = calloc((size_t)elements + 1, sizeof(data[0]));
    if (turns < 1 || elements < 1 || data == NULL || hvd_init(&err) != 0) {
        fprintf(stderr, "wake_thread [TURNS [BYTES]]: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < WARM_UP;
         i++) { /* as the turns will be, so that they are replayed */
        greatest("begin", 0);
        finish(start("data", data, HVD_FLOAT32, elements, HVD_SUM), WAITS);
        greatest("end", 0);
    }
    measure("the caller waits", WAITS, turns);
    measure("the caller sleeps, a thread is woken", SLEEPS, turns);
    measure("the caller computes, a thread is woken", COMPUTES, turns);
    hvd_shutdown();
    free(data);
    return 0;
}
