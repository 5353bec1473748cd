/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the interface that must go well. */
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

    call_finish(hvd_set_remove_start(set, &request, &err), &request, &err);
    hvd_request_free(request);
}

void call_barrier(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_barrier_start(0, &request, &err), &request, &err);
    hvd_request_free(request);
}

void call_join(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_join_start(&request, &err), &request, &err);
    hvd_request_free(request);
}

static uint64_t reduce_number(uint64_t value, enum hvd_op op)
{
    struct hvd_tensor tensor =
        call_tensor("calls.number", HVD_UINT64, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_allreduce_start(&tensor, 1, op, 1, 1, 0, &request, &err), &request,
                &err);
    hvd_request_free(request);
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
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_broadcast_start(&tensor, 0, 0, &request, &err), &request, &err);
    hvd_request_free(request);
    return seed;
}
