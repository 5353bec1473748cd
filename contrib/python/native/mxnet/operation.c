/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as operations of MXNet's engine. */
#include "contrib/python/native/mxnet/operation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "contrib/python/native/mxnet/done.h"
#include "contrib/python/native/waiter/waiter.h"
#include "gpu_binding/base/env.h"

struct operation {
    struct hvd_awaited awaited; /* must be the first member */
    struct mxnet_done done;
    /* its own tensors and arrays are not used: the next two members are copies of them */
    struct hvd_mxnet_call call;
    struct hvd_tensor *tensors;
    /* copies of Python's handles; they share the memory of the arrays and outlive the
     * handles */
    mxnet_array *arrays;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long under_way; /* the number of operations that exist */

/* MXNET_ENGINE_TYPE=NaiveEngine: the engine expects that an operation has ended when its
 * function returns. */
static bool is_naive;

static void count(int change)
{
    pthread_mutex_lock(&lock);
    under_way += change;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Frees an operation. The engine calls this when the operation has ended, or if the
 * operation never starts because the computation of an input has failed. */
static void destroy_operation(void *argument)
{
    struct operation *operation = argument;

    hvd_request_free(operation->awaited.request);
    for (int i = 0; i < operation->call.count; i++) {
        free((char *)operation->tensors[i].name);
        free((int64_t *)operation->tensors[i].shape);
        if (operation->arrays[i] != NULL) {
            mx.NDArrayFree(operation->arrays[i]);
        }
    }
    free(operation->tensors);
    free(operation->arrays);
    free(operation);
    count(-1);
}

static bool copy_tensor(struct hvd_tensor *to, const struct hvd_tensor *from)
{
    size_t bytes = (size_t)from->ndim * sizeof(from->shape[0]);
    int64_t *shape = malloc(bytes + 1);

    *to = *from;
    to->name = strdup(from->name);
    to->shape = shape;
    if (to->name == NULL || shape == NULL) {
        return false;
    }
    memcpy(shape, from->shape, bytes);
    return true;
}

static struct operation *create_operation(const struct hvd_mxnet_call *call)
{
    struct operation *operation = calloc(1, sizeof(*operation));
    size_t members = (size_t)call->count;
    bool is_complete;

    if (operation == NULL) {
        return NULL;
    }
    count(1);
    operation->tensors = calloc(members, sizeof(operation->tensors[0]));
    operation->arrays = calloc(members, sizeof(operation->arrays[0]));
    is_complete = operation->tensors != NULL && operation->arrays != NULL;
    operation->call = *call;
    operation->call.count = is_complete ? call->count : 0;
    for (int i = 0; is_complete && i < call->count; i++) {
        is_complete = copy_tensor(&operation->tensors[i], &call->tensors[i]) &&
                      mx.ShallowCopyNDArray(call->arrays[i], &operation->arrays[i]) == 0;
    }
    if (!is_complete) {
        destroy_operation(operation);
        return NULL;
    }
    return operation;
}

/* --- run by the engine --- */

/* Returns the name under which horovod/mxnet/errors.py registers the exception with
 * MXNet. */
static const char *exception_name(int status)
{
    switch (status) {
    case HVD_ERR_ARG:
        return "HorovodArgumentError";
    case HVD_ERR_UNSUPPORTED:
        return "NotImplementedError";
    default:
        return "HorovodInternalError";
    }
}

/* Ends the operation with this status. The engine then frees it. */
static void finish_operation(struct operation *operation, int status,
                             const struct hvd_error *error)
{
    char text[sizeof(error->text) + 64];

    snprintf(text, sizeof(text), "%s: %s", exception_name(status), error->text);
    hvd_mxnet_done_run(&operation->done, status == 0 ? NULL : text);
}

static void ended(struct hvd_awaited *awaited)
{
    struct hvd_error error = {0};
    int status = hvd_test(awaited->request, &error);

    finish_operation((struct operation *)awaited, status, &error);
}

static int find_memory(struct operation *operation, struct hvd_error *err)
{
    for (int i = 0; i < operation->call.count; i++) {
        void *address;
        int status = hvd_mxnet_address(operation->arrays[i], &address, err);

        if (status != 0) {
            return status;
        }
        operation->tensors[i].input = address;
        operation->tensors[i].output = address;
    }
    return 0;
}

static int submit_operation(struct operation *operation, struct hvd_error *err)
{
    const struct hvd_mxnet_call *call = &operation->call;

    switch (call->kind) {
    case HVD_MXNET_ALLREDUCE:
        return hvd_allreduce_start(operation->tensors, call->count, call->op,
                                   call->prescale, call->postscale, call->set,
                                   &operation->awaited.request, err);
    case HVD_MXNET_BROADCAST:
        return hvd_broadcast_start(operation->tensors, call->root, call->set,
                                   &operation->awaited.request, err);
    }
    return hvd_fail(err, HVD_ERR_ARG, "there is no collective %d", (int)call->kind);
}

static void start_operation(void *context, struct mxnet_done *done, void *argument)
{
    struct operation *operation = argument;
    struct hvd_error error = {0};
    int status;

    (void)context;
    operation->done = *done;
    operation->awaited.ended = ended;
    status = find_memory(operation, &error);
    if (status == 0) {
        status = submit_operation(operation, &error);
    }
    if (status != 0) {
        finish_operation(operation, status, &error);
    } else if (is_naive) {
        hvd_wait(operation->awaited.request, NULL);
        ended(&operation->awaited);
    } else {
        hvd_waiter_add(&operation->awaited);
    }
}

/* --- submission --- */

/* Whether two arrays use the same memory. The engine identifies memory by its chunk, and
 * an mxnet::NDArray begins with the pointer to its chunk. */
static bool shares_memory(mxnet_array a, mxnet_array b)
{
    return *(void **)a == *(void **)b;
}

/* Copies the arrays to `out`, except those that share memory with an earlier one: the
 * engine makes an operation that writes the same memory twice wait for itself. Returns
 * the number of copied arrays. */
static int distinct(const mxnet_array *arrays, int count, mxnet_array *out)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        bool is_new = true;

        for (int j = 0; is_new && j < found; j++) {
            is_new = !shares_memory(arrays[i], out[j]);
        }
        if (is_new) {
            out[found++] = arrays[i];
        }
    }
    return found;
}

static int push_operation(struct operation *operation, mxnet_array *writes)
{
    static const struct mxnet_device cpu = {.type = MXNET_CPU};
    static const int property = MXNET_PRIORITIZED;
    static const char *const names[] = {[HVD_MXNET_ALLREDUCE] = "HorovodAllreduce",
                                        [HVD_MXNET_BROADCAST] = "HorovodBroadcast"};
    int count = operation->call.count;

    for (int i = 0; mx.reorder != NULL && i < count; i++) {
        if (operation->tensors[i].device == HVD_DEVICE_CPU) {
            mx.reorder(operation->arrays[i]);
        }
    }
    return mx.EnginePushAsyncND(start_operation, operation, destroy_operation, &cpu, NULL,
                                0, writes, distinct(operation->arrays, count, writes),
                                &property, operation->call.priority,
                                names[operation->call.kind], false);
}

int hvd_mxnet_push(const struct hvd_mxnet_call *call, struct hvd_error *err)
{
    mxnet_array *writes = calloc((size_t)call->count, sizeof(writes[0]));
    struct operation *operation = writes == NULL ? NULL : create_operation(call);
    int status = 0;

    if (operation == NULL) {
        free(writes);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a collective of %d arrays",
                        call->count);
    }
    /* If this fails, MXNet does not tell whether it has called the deleter. Do not free
     * the operation: a leak is better than a double free. */
    if (push_operation(operation, writes) != 0) {
        count(-1);
        status = hvd_fail(err, HVD_ERR_SYS, "MXNet's engine rejects a collective: %s",
                          mx.GetLastError());
    }
    free(writes);
    return status;
}

int hvd_mxnet_open(const char *path, struct hvd_error *err)
{
    const char *engine = getenv(HVD_ENV_MXNET_ENGINE);
    int status = hvd_mxnet_find(path, err);

    is_naive = engine != NULL && strcmp(engine, "NaiveEngine") == 0;
    if (status != 0) {
        return status;
    }
    status = hvd_mxnet_done_prepare(err);
    return status != 0 ? status : hvd_waiter_start(err);
}

int hvd_mxnet_drain(int timeout_ms)
{
    struct timespec until;
    int status = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&lock);
    while (under_way > 0 && status == 0) {
        status = pthread_cond_timedwait(&changed, &lock, &until);
    }
    status = under_way > 0 ? HVD_INPROGRESS : 0;
    pthread_mutex_unlock(&lock);
    return status;
}
