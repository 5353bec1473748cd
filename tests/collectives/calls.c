/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the interface that must succeed. */
#include "tests/collectives/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/tap.h"

static void give_up(const struct hvd_error *err)
{
    fprintf(stderr, "# rank %d: %s\n", hvd_rank(), err->text);
    exit(1);
}

int call_init(void)
{
    struct hvd_error err = {0};

    if (hvd_init(&err) != 0) {
        give_up(&err);
    }
    return hvd_rank();
}

void call_finish(int started, struct hvd_request **request, struct hvd_error *err)
{
    if (started != 0 || hvd_wait(*request, err) != 0) {
        give_up(err);
    }
}

static void finish_and_free(int started, struct hvd_request *request,
                            struct hvd_error *err)
{
    call_finish(started, &request, err);
    hvd_request_free(request);
}

void call_allreduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                    double prescale, double postscale, int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started =
        hvd_allreduce_start(tensors, count, op, prescale, postscale, set, &request, &err);

    finish_and_free(started, request, &err);
}

void call_reducescatter(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                        double prescale, double postscale, int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_reducescatter_start(tensors, count, op, prescale, postscale, set,
                                          &request, &err);

    finish_and_free(started, request, &err);
}

void call_broadcast(const struct hvd_tensor *tensor, int root, int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_broadcast_start(tensor, root, set, &request, &err);

    finish_and_free(started, request, &err);
}

bool call_sums_ones(const char *name)
{
    double sum = 1;
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT64, NULL, 0, &sum, &sum);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
    return sum == hvd_size();
}

int call_set_add(const int *ranks, int count)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int set;

    call_finish(hvd_set_add_start(ranks, count, &request, &err), &request, &err);
    set = hvd_request_set(request);
    hvd_request_free(request);
    return set;
}

void call_set_remove(int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_set_remove_start(set, &request, &err);

    finish_and_free(started, request, &err);
}

void call_barrier(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_barrier_start(0, &request, &err);

    finish_and_free(started, request, &err);
}

void call_join(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_join_start(&request, &err);

    finish_and_free(started, request, &err);
}

static uint64_t reduce_number(uint64_t value, enum hvd_op op)
{
    struct hvd_tensor tensor =
        call_tensor("calls.number", HVD_UINT64, NULL, 0, &value, &value);

    call_allreduce(&tensor, 1, op, 1, 1, HVD_SET_GLOBAL);
    return value;
}

bool call_is_same(const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    uint64_t sum = 1469598103934665603u;

    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ byte[i]) * 1099511628211u;
    }
    return reduce_number(sum, HVD_MIN) == reduce_number(sum, HVD_MAX);
}

struct hvd_tensor call_tensor(const char *name, enum hvd_dtype dtype,
                              const int64_t *shape, int ndim, const void *input,
                              void *output)
{
    return (struct hvd_tensor){.name = name,
                               .input = input,
                               .output = output,
                               .shape = shape,
                               .ndim = ndim,
                               .dtype = dtype,
                               .device = HVD_DEVICE_CPU};
}

uint32_t call_seed(void)
{
    uint32_t seed = hvd_rank() == 0 ? tap_seed((unsigned)time(NULL)) : 0;
    struct hvd_tensor tensor =
        call_tensor("calls.seed", HVD_UINT32, NULL, 0, &seed, &seed);

    call_broadcast(&tensor, 0, HVD_SET_GLOBAL);
    return seed;
}

uint32_t call_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}
