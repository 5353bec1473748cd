/* SPDX-License-Identifier: Apache-2.0 */
/* What calibrate.py compares with predictions, and what it predicts from.
 *
 *   measure KIND GB BYTES...         as a rank of a job: allreduce or allgather, run inline, so
 *                                    many GB of each size; rank 0 prints bytes and microseconds
 *   measure yield                    likewise: sched_yield, of ranks that share a core; "0" and the
 *                                    microseconds from one rank to the next
 *
 * Times are what the fastest tenth of all calls stays below: other work on the machine
 * makes calls slower, never faster. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/api/direct.h"

enum {
    ROWS = 100
};

static const int64_t least_bytes = 20000; /* what a call costs at least, as bytes */

static double samples[ROWS];
static int sample_count;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* What one of so many samples stays below. */
static double quantile(int part)
{
    qsort(samples, (size_t)sample_count, sizeof(samples[0]), compare);
    return samples[sample_count / part];
}

static _Noreturn void fail(const char *text)
{
    fprintf(stderr, "measure: %s\n", text);
    exit(1);
}

static void run(struct hvd_direct *direct)
{
    struct hvd_error err = {0};

    if (hvd_direct_run(direct, &err) != 0) {
        fail(err.text);
    }
}

static struct hvd_direct *plan(struct hvd_start *start, float *data, int64_t count)
{
    struct hvd_tensor tensor = {.name = "measure",
                                .input = data,
                                .output = data + count,
                                .shape = &count,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_direct *direct;
    struct hvd_error err = {0};

    if (hvd_direct_plan(start, &tensor, 1, &direct, &err) != 0) {
        fail(err.text);
    }
    return direct;
}

/* Of one call, in rows of calls: some calls find the work done by others. */
static double time_calls(struct hvd_direct *direct, int calls)
{
    for (int i = 0; i < 5; i++) {
        run(direct);
    }
    for (sample_count = 0; sample_count < ROWS; sample_count++) {
        double start = now();

        for (int i = 0; i < calls; i++) {
            run(direct);
        }
        samples[sample_count] = (now() - start) / calls;
    }
    return quantile(10);
}

/* Every call lets all other ranks run once. */
static double time_yields(void)
{
    const int calls = 500;

    for (sample_count = 0; sample_count < ROWS; sample_count++) {
        double start = now();

        for (int i = 0; i < calls; i++) {
            sched_yield();
        }
        samples[sample_count] = (now() - start) / calls;
    }
    return quantile(2) / hvd_size();
}

/* All ranks make the same number of calls, fewer of large ones. */
static void measure(bool is_allgather, double traffic, int64_t bytes)
{
    double calls = traffic / (double)(least_bytes + bytes) / ROWS;
    int64_t count = bytes / (int64_t)sizeof(float);
    float *data = calloc((size_t)count * 2, sizeof(float));
    struct hvd_start start = {.kind =
                                  is_allgather ? HVD_KIND_ALLGATHER : HVD_KIND_ALLREDUCE,
                              .word = "Measure",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    struct hvd_direct *direct = plan(&start, data, count);
    double took;

    memset(data, 0, (size_t)count * 2 * sizeof(float));
    took = time_calls(direct, calls < 1 ? 1 : (int)calls);
    if (hvd_rank() == 0) {
        printf("%lld %.3f\n", (long long)bytes, took * 1e6);
        fflush(stdout);
    }
    hvd_direct_destroy(direct);
    free(data);
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};

    bool is_yield = argc == 2 && strcmp(argv[1], "yield") == 0;

    if (argc < 4 && !is_yield) {
        fail("see the comment in measure.c");
    }
    if (hvd_init(&err) != 0 || hvd_direct_open(&err) != 0) {
        fail(err.text);
    }
    if (is_yield) {
        double took = time_yields();

        if (hvd_rank() == 0) {
            printf("0 %.3f\n", took * 1e6);
        }
    }
    for (int i = 3; i < argc; i++) {
        measure(strcmp(argv[1], "allgather") == 0, atof(argv[2]) * 1e9, atoll(argv[i]));
    }
    hvd_direct_close();
    hvd_shutdown();
    return 0;
}
