/* SPDX-License-Identifier: Apache-2.0 */
/* Submit all, wait for all. */
#include "contrib/bench/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void die(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", hvd_rank(), what, why);
    exit(1);
}

double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void batch_init(struct batch *batch, const char *prefix, int count, int64_t elements)
{
    int64_t all = count * elements;

    *batch = (struct batch){.count = count, .elements = elements};
    batch->in = malloc((size_t)all * sizeof(float));
    batch->out = malloc((size_t)all * sizeof(float));
    batch->names = calloc((size_t)count, sizeof(batch->names[0]));
    batch->requests = calloc((size_t)count, sizeof(batch->requests[0]));
    if (batch->in == NULL || batch->out == NULL || batch->names == NULL ||
        batch->requests == NULL) {
        die(prefix, "out of memory");
    }
    for (int64_t i = 0; i < all; i++) {
        batch->in[i] = (float)(hvd_rank() + 1);
        batch->out[i] = 0;
    }
    for (int i = 0; i < count; i++) {
        snprintf(batch->names[i], sizeof(batch->names[i]), "%s.%d", prefix, i);
    }
}

void batch_finish(struct batch *batch)
{
    free(batch->in);
    free(batch->out);
    free(batch->names);
    free(batch->requests);
}

void batch_submit(struct batch *batch, int index)
{
    struct hvd_tensor tensor = {.name = batch->names[index],
                                .input = batch->in + index * batch->elements,
                                .output = batch->out + index * batch->elements,
                                .shape = &batch->elements,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_error err;

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL,
                            &batch->requests[index], &err) != 0) {
        die(tensor.name, err.text);
    }
}

void batch_wait(struct batch *batch, int index)
{
    struct hvd_error err;

    if (hvd_wait(batch->requests[index], &err) != 0) {
        die(batch->names[index], err.text);
    }
    hvd_request_free(batch->requests[index]);
}

double batch_run(struct batch *batch)
{
    double start = seconds_now(), submitted;

    for (int i = 0; i < batch->count; i++) {
        batch_submit(batch, i);
    }
    submitted = seconds_now() - start;
    for (int i = 0; i < batch->count; i++) {
        batch_wait(batch, i);
    }
    return submitted;
}

void batch_check(struct batch *batch, const char *who)
{
    float expected = (float)(hvd_size() * (hvd_size() + 1)) / 2;

    for (int64_t i = 0; i < batch->count * batch->elements; i++) {
        if (batch->out[i] != expected) {
            die(who, "a wrong sum");
        }
        batch->out[i] = 0;
    }
}
