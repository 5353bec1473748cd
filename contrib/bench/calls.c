/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd's calls cost the thread that makes them, without Python: the least that calls.py and
 * calls_tensorflow.py can come to.
 *
 *   hvdrun -np 2 calls [COUNT [STEPS]]
 *
 * Rank 0 prints the lines of calls.py that C has, too, of COUNT tensors (default 161) of one
 * element and STEPS steps (default 200). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "contrib/bench/batch.h"
#include "contrib/bench/median.h"

enum {
    WARM_UP_STEPS = 30,
    MOST_STEPS = 10000
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

static double processor_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void restart(struct stopwatch *watch)
{
    watch->clock = seconds_now();
    watch->processor = processor_now();
}

static void note(struct stopwatch *watch, enum figure figure)
{
    watch->times->clock[figure] = seconds_now() - watch->clock;
    watch->times->processor[figure] = processor_now() - watch->processor;
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
        batch_submit(batch, i);
    }
    note(watch, SUBMIT);
    await_all(batch);
    restart(watch);
    for (int i = 0; i < batch->count; i++) {
        hvd_test(batch->requests[i], NULL);
    }
    note(watch, POLL);
    for (int i = 0; i < batch->count; i++) {
        batch_wait(batch, i);
    }
    note(watch, SYNCHRONIZE);
}

static void run_together(struct batch *batch, struct stopwatch *watch)
{
    meet(watch);
    batch_run(batch);
    note(watch, TOGETHER);
}

static void run_one_by_one(struct batch *batch, struct stopwatch *watch)
{
    double submit = 0, start;

    meet(watch);
    for (int i = 0; i < batch->count; i++) {
        start = seconds_now();
        batch_submit(batch, i);
        submit += seconds_now() - start;
        batch_wait(batch, i);
    }
    note(watch, ONE_BY_ONE);
    watch->times->clock[SUBMIT_OF_ONE] = submit;
    watch->times->processor[SUBMIT_OF_ONE] = submit; /* it waits for nothing */
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
    batch_init(&batch, "calls", count, 1);
    for (int i = -WARM_UP_STEPS; i < steps; i++) {
        struct stopwatch watch = {.times = &times[i < 0 ? 0 : i]};

        run_apart(&batch, &watch);
        run_together(&batch, &watch);
        run_one_by_one(&batch, &watch);
    }
    if (hvd_rank() == 0) {
        print(times, steps, count);
    }
    batch_finish(&batch);
    return hvd_shutdown();
}
