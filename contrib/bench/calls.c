/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time that hvd's calls take the calling thread.
 *
 *   hvdrun -np 2 calls [COUNT [STEPS]]
 *
 * Each step allreduces COUNT tensors (default 161) of one element. Rank 0 prints
 * microseconds per tensor, as elapsed and as processor time, medians of STEPS steps
 * (default 200):
 *
 *   start         hvd_allreduce_start, all tensors
 *   take          hvd_wait and hvd_request_free of requests that are done
 *   one by one    each tensor is waited for before the next one is started */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/hvd.h"
#include "contrib/bench/median.h"

enum {
    WARM_UP_STEPS = 30,
    MOST_TENSORS = 10000,
    MOST_STEPS = 10000
};

/* The figures, in the order of printing. */
enum figure {
    START,
    TAKE,
    ONE_BY_ONE,
    FIGURES
};

static const char *const labels[FIGURES] = {"start", "take", "one by one"};

struct time {
    double clock, processor; /* seconds */
};

static float in[MOST_TENSORS], out[MOST_TENSORS];
static char names[MOST_TENSORS][24];
static struct hvd_request *requests[MOST_TENSORS];

static void check_status(int status, const struct hvd_error *err)
{
    if (status != 0) {
        fprintf(stderr, "rank %d: %s\n", hvd_rank(), err->text);
        exit(1);
    }
}

static void start_call(int index)
{
    static const int64_t one = 1;
    const struct hvd_tensor tensor = {.name = names[index],
                                      .input = &in[index],
                                      .output = &out[index],
                                      .shape = &one,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT32,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_error err;

    check_status(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL,
                                     &requests[index], &err),
                 &err);
}

static void take_result(int index)
{
    struct hvd_error err;

    check_status(hvd_wait(requests[index], &err), &err);
    hvd_request_free(requests[index]);
}

static void meet_ranks(void)
{
    struct hvd_request *request;
    struct hvd_error err;

    check_status(hvd_barrier_start(HVD_SET_GLOBAL, &request, &err), &err);
    check_status(hvd_wait(request, &err), &err);
    hvd_request_free(request);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct time read_times(void)
{
    return (struct time){seconds_of(CLOCK_MONOTONIC),
                         seconds_of(CLOCK_THREAD_CPUTIME_ID)};
}

static struct time since(struct time begin)
{
    struct time end = read_times();

    return (struct time){end.clock - begin.clock, end.processor - begin.processor};
}

/* Polls seldom, so that the requests end without this thread's help. */
static void await_all(int count)
{
    const struct timespec pause = {.tv_nsec = 200000};

    for (int i = 0; i < count; i++) {
        while (hvd_test(requests[i], NULL) == HVD_INPROGRESS) {
            nanosleep(&pause, NULL);
        }
    }
}

static void run_step(int count, struct time times[FIGURES])
{
    struct time begin;

    meet_ranks();
    begin = read_times();
    for (int i = 0; i < count; i++) {
        start_call(i);
    }
    times[START] = since(begin);
    await_all(count);
    begin = read_times();
    for (int i = 0; i < count; i++) {
        take_result(i);
    }
    times[TAKE] = since(begin);
    meet_ranks();
    begin = read_times();
    for (int i = 0; i < count; i++) {
        start_call(i);
        take_result(i);
    }
    times[ONE_BY_ONE] = since(begin);
}

static void print(struct time times[][FIGURES], int steps, int count)
{
    static double clock[MOST_STEPS], processor[MOST_STEPS];

    printf("%-12s%10s%10s\n", "us a tensor", "elapsed", "cpu");
    for (int figure = 0; figure < FIGURES; figure++) {
        for (int i = 0; i < steps; i++) {
            clock[i] = times[i][figure].clock * 1e6 / count;
            processor[i] = times[i][figure].processor * 1e6 / count;
        }
        printf("%-12s%10.2f%10.2f\n", labels[figure], median(clock, steps),
               median(processor, steps));
    }
}

int main(int argc, char **argv)
{
    static struct time times[MOST_STEPS][FIGURES];
    int count = argc > 1 ? atoi(argv[1]) : 161;
    int steps = argc > 2 ? atoi(argv[2]) : 200;
    struct hvd_error err = {0};

    if (count < 1 || count > MOST_TENSORS || steps < 1 || steps > MOST_STEPS) {
        fprintf(stderr, "calls [COUNT [STEPS]]: expected numbers from 1 to %d\n",
                MOST_STEPS);
        return 2;
    }
    check_status(hvd_init(&err), &err);
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "calls.%d", i);
    }
    for (int i = -WARM_UP_STEPS; i < steps; i++) {
        run_step(count, times[i < 0 ? 0 : i]);
    }
    if (hvd_rank() == 0) {
        print(times, steps, count);
    }
    return hvd_shutdown();
}
