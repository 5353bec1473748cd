/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of hvd's calls to the thread that makes them.
 *
 *   hvdrun -np 2 calls [COUNT [STEPS]]
 *
 * Each step allreduces COUNT tensors (default 161) of one element. Rank 0 prints microseconds per
 * tensor over STEPS steps (default 200), elapsed and of processor time: median and lowest tenth.
 *
 *   submit            hvd_allreduce_start, all tensors
 *   poll              hvd_test of requests that are done
 *   synchronize       hvd_wait and hvd_request_free of requests that are done
 *   together          all tensors are started, then waited for
 *   one by one        each tensor is waited for before the next is started
 *   - of it submit    hvd_allreduce_start in that case */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/hvd.h"
#include "contrib/bench/median.h"

enum {
    WARM_UP_STEPS = 30,
    MOST_STEPS = 10000
};

/* Tensors of one float32 each. */
struct batch {
    int count;
    float *in, *out;
    char (*names)[24];
    struct hvd_request **requests;
};

/* In the order of printing. */
enum figure {
    SUBMIT,
    POLL,
    SYNCHRONIZE,
    TOGETHER,
    ONE_BY_ONE,
    SUBMIT_OF_ONE,
    FIGURES
};

static const char *const labels[FIGURES] = {
    [SUBMIT] = "submit",           [POLL] = "poll",
    [SYNCHRONIZE] = "synchronize", [TOGETHER] = "together",
    [ONE_BY_ONE] = "one by one",   [SUBMIT_OF_ONE] = "- of it submit",
};

/* Seconds of one step. */
struct times {
    double clock[FIGURES], processor[FIGURES];
};

struct stopwatch {
    struct times *times;
    double clock, processor; /* of the last note */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", hvd_rank(), what, why);
    exit(1);
}

static void create_batch(struct batch *batch, int count)
{
    *batch = (struct batch){.count = count};
    batch->in = calloc((size_t)count, sizeof(batch->in[0]));
    batch->out = calloc((size_t)count, sizeof(batch->out[0]));
    batch->names = calloc((size_t)count, sizeof(batch->names[0]));
    batch->requests = calloc((size_t)count, sizeof(batch->requests[0]));
    if (batch->in == NULL || batch->out == NULL || batch->names == NULL ||
        batch->requests == NULL) {
        die("calls", "out of memory");
    }
    for (int i = 0; i < count; i++) {
        snprintf(batch->names[i], sizeof(batch->names[i]), "calls.%d", i);
    }
}

static void destroy_batch(struct batch *batch)
{
    free(batch->in);
    free(batch->out);
    free(batch->names);
    free(batch->requests);
}

static void submit(struct batch *batch, int index)
{
    static const int64_t one = 1;
    const struct hvd_tensor tensor = {.name = batch->names[index],
                                      .input = &batch->in[index],
                                      .output = &batch->out[index],
                                      .shape = &one,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT32,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_error err;

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL,
                            &batch->requests[index], &err) != 0) {
        die(tensor.name, err.text);
    }
}

static void wait_for(struct batch *batch, int index)
{
    struct hvd_error err;

    if (hvd_wait(batch->requests[index], &err) != 0) {
        die(batch->names[index], err.text);
    }
    hvd_request_free(batch->requests[index]);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void restart(struct stopwatch *watch)
{
    watch->clock = seconds_of(CLOCK_MONOTONIC);
    watch->processor = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static void note(struct stopwatch *watch, enum figure figure)
{
    watch->times->clock[figure] = seconds_of(CLOCK_MONOTONIC) - watch->clock;
    watch->times->processor[figure] =
        seconds_of(CLOCK_THREAD_CPUTIME_ID) - watch->processor;
    restart(watch);
}

/* The ranks begin together. */
static void meet(struct stopwatch *watch)
{
    struct hvd_request *request;

    if (hvd_barrier_start(HVD_SET_GLOBAL, &request, NULL) != 0 ||
        hvd_wait(request, NULL) != 0) {
        exit(1);
    }
    hvd_request_free(request);
    restart(watch);
}

static void await_all(const struct batch *batch)
{
    const struct timespec pause = {.tv_nsec = 200000};

    for (int i = 0; i < batch->count; i++) {
        while (hvd_test(batch->requests[i], NULL) == HVD_INPROGRESS) {
            nanosleep(&pause, NULL);
        }
    }
}

static void run_apart(struct batch *batch, struct stopwatch *watch)
{
    meet(watch);
    for (int i = 0; i < batch->count; i++) {
        submit(batch, i);
    }
    note(watch, SUBMIT);
    await_all(batch);
    restart(watch);
    for (int i = 0; i < batch->count; i++) {
        hvd_test(batch->requests[i], NULL);
    }
    note(watch, POLL);
    for (int i = 0; i < batch->count; i++) {
        wait_for(batch, i);
    }
    note(watch, SYNCHRONIZE);
}

static void run_together(struct batch *batch, struct stopwatch *watch)
{
    meet(watch);
    for (int i = 0; i < batch->count; i++) {
        submit(batch, i);
    }
    for (int i = 0; i < batch->count; i++) {
        wait_for(batch, i);
    }
    note(watch, TOGETHER);
}

static void run_one_by_one(struct batch *batch, struct stopwatch *watch)
{
    double submitting = 0, start;

    meet(watch);
    for (int i = 0; i < batch->count; i++) {
        start = seconds_of(CLOCK_MONOTONIC);
        submit(batch, i);
        submitting += seconds_of(CLOCK_MONOTONIC) - start;
        wait_for(batch, i);
    }
    note(watch, ONE_BY_ONE);
    watch->times->clock[SUBMIT_OF_ONE] = submitting;
    watch->times->processor[SUBMIT_OF_ONE] = submitting; /* it waits for nothing */
}

static void print_row(const struct times *times, int steps, enum figure figure, int count)
{
    double clock[MOST_STEPS], processor[MOST_STEPS], middle;

    for (int i = 0; i < steps; i++) {
        clock[i] = times[i].clock[figure] * 1e6 / count;
        processor[i] = times[i].processor[figure] * 1e6 / count;
    }
    middle = median(clock, steps);
    printf("%-16s%8.2f%8.2f", labels[figure], middle, clock[steps / 10]);
    middle = median(processor, steps);
    printf("%8.2f%8.2f\n", middle, processor[steps / 10]);
}

static void print(const struct times *times, int steps, int count)
{
    printf("%-16s%8s%8s%8s%8s\n", "us per tensor", "clock", "1/10", "cpu", "1/10");
    for (int i = 0; i < FIGURES; i++) {
        print_row(times, steps, (enum figure)i, count);
    }
}

int main(int argc, char **argv)
{
    static struct times times[MOST_STEPS];
    int count = argc > 1 ? atoi(argv[1]) : 161;
    int steps = argc > 2 ? atoi(argv[2]) : 200;
    struct hvd_error err = {0};
    struct batch batch;

    if (count < 1 || steps < 1 || steps > MOST_STEPS || hvd_init(&err) != 0) {
        fprintf(stderr,
                "calls [COUNT [STEPS]]: a number is wrong, or hvd_init fails: %s\n",
                err.text);
        return 1;
    }
    create_batch(&batch, count);
    for (int i = -WARM_UP_STEPS; i < steps; i++) {
        struct stopwatch watch = {.times = &times[i < 0 ? 0 : i]};

        run_apart(&batch, &watch);
        run_together(&batch, &watch);
        run_one_by_one(&batch, &watch);
    }
    if (hvd_rank() == 0) {
        print(times, steps, count);
    }
    destroy_batch(&batch);
    return hvd_shutdown();
}
