/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the processor time of ranks that wait for a late rank.
 *
 *   hvdrun -np 4 wait_cpu [SECONDS [BYTES]]
 *
 * The last rank starts a tensor of BYTES (default 4096) SECONDS (default 10) after the
 * others. This is measured twice: for a tensor that ranks agree on by messages, and for
 * one whose batch repeats and is replayed without messages. Rank 0 prints the processor
 * time of the process that used the most, as a share of one core, and its wake-ups per
 * second. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "collectives/hvd.h"

enum {
    PLANNED_STEPS = 60
};

struct price {
    double processor; /* seconds */
    double wakes;
    double elapsed; /* seconds */
};

static int64_t elements;
static float *data;

static void reduce_values(const char *name, void *values, enum hvd_dtype dtype,
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

    if (hvd_allreduce_start(&tensor, 1, op, 1, 1, HVD_SET_GLOBAL, &request, &err) != 0 ||
        hvd_wait(request, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    hvd_request_free(request);
}

static struct price look(void)
{
    struct rusage usage;
    struct timespec now;

    getrusage(RUSAGE_SELF, &usage);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct price){
        .processor = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
        .wakes = (double)(usage.ru_nvcsw + usage.ru_nivcsw),
        .elapsed = (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
    };
}

static void wait_for_late(const char *name, const char *what, unsigned seconds)
{
    struct price before = look(), after;
    bool is_late = hvd_rank() == hvd_size() - 1;
    double worst[2] = {0};

    if (is_late) {
        sleep(seconds);
    }
    reduce_values(name, data, HVD_FLOAT32, elements, HVD_SUM);
    after = look();
    if (!is_late) {
        double elapsed = after.elapsed - before.elapsed;

        worst[0] = 100 * (after.processor - before.processor) / elapsed;
        worst[1] = (after.wakes - before.wakes) / elapsed;
    }
    reduce_values("worst", worst, HVD_FLOAT64, 2, HVD_MAX);
    if (hvd_rank() == 0) {
        printf("%s: %.2f %% of a core, %.0f wake-ups a second\n", what, worst[0],
               worst[1]);
    }
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    struct hvd_error err = {0};

    elements = (argc > 2 ? atoll(argv[2]) : 4096) / (int64_t)sizeof(data[0]);
    data = calloc((size_t)elements + 1, sizeof(data[0]));
    if (data == NULL || hvd_init(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    wait_for_late("agreed", "agreed upon", seconds);
    for (int i = 0; i < PLANNED_STEPS; i++) {
        reduce_values("replayed", data, HVD_FLOAT32, elements, HVD_SUM);
    }
    wait_for_late("replayed", "replayed", seconds);
    hvd_shutdown();
    free(data);
    return 0;
}
