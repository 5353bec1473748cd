/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends one execution of a collective node. */
#include "contrib/python/native/tensorflow/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "contrib/python/native/tensorflow/dtype.h"
#include "contrib/python/native/tensorflow/output.h"
#include "contrib/python/native/tensorflow/start.h"
#include "gpu_binding/base/error.h"

/* Returns TensorFlow's code for a status of libhvd; the same as in Horovod. */
static int code_of(int status)
{
    switch (status) {
    case HVD_ERR_ARG:
        return TF_INVALID_ARGUMENT;
    case HVD_ERR_NOMEM:
        return TF_RESOURCE_EXHAUSTED;
    case HVD_ERR_MISMATCH:
    case HVD_ERR_STATE:
        return TF_FAILED_PRECONDITION;
    case HVD_ERR_UNSUPPORTED:
        return TF_UNIMPLEMENTED;
    default:
        return TF_UNKNOWN;
    }
}

/* Reports a failure to TensorFlow. If the job is over, the text begins with the kind of
 * the node, such as HorovodAllreduce, even if the caller named the node: elastic training
 * recognizes such failures by it. */
static void fail_context(struct TF_OpKernelContext *context, enum hvd_tf_kind kind,
                         int status, const char *text)
{
    static const char *const kinds[] = {
        [HVD_TF_ALLREDUCE] = "Allreduce", [HVD_TF_ALLGATHER] = "Allgather",
        [HVD_TF_BROADCAST] = "Broadcast", [HVD_TF_ALLTOALL] = "Alltoall",
        [HVD_TF_JOIN] = "Join",           [HVD_TF_REDUCESCATTER] = "Reducescatter"};
    struct TF_Status *failure = tf.NewStatus();
    int code = code_of(status);
    char named[sizeof(((struct hvd_error *)0)->text) + 32];

    snprintf(named, sizeof(named), "Horovod%s failed: %s", kinds[kind], text);
    tf.SetStatus(failure, code, code == TF_UNKNOWN ? named : text);
    tf.OpKernelContext_Failure(context, failure);
    tf.DeleteStatus(failure);
}

static void delete_tensors(struct TF_Tensor **tensors, int count)
{
    for (int i = 0; tensors != NULL && i < count; i++) {
        if (tensors[i] != NULL) {
            tf.DeleteTensor(tensors[i]);
            tensors[i] = NULL;
        }
    }
}

void hvd_tf_call_destroy(struct hvd_tf_call *call)
{
    if (call == NULL) {
        return;
    }
    hvd_request_free(call->awaited.request);
    delete_tensors(call->inputs, call->kernel->count);
    delete_tensors(call->outputs, call->kernel->count);
    for (int i = 0; call->tensors != NULL && i < call->kernel->count; i++) {
        free((void *)call->tensors[i].shape);
    }
    free(call->inputs);
    free(call->outputs);
    free(call->tensors);
    free(call);
}

static struct hvd_tf_call *create_call(struct hvd_tf_kernel *kernel)
{
    size_t count = (size_t)kernel->count + 1;
    struct hvd_tf_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    call->kernel = kernel;
    call->inputs = calloc(count, sizeof(call->inputs[0]));
    call->outputs = calloc(count, sizeof(call->outputs[0]));
    call->tensors = calloc(count, sizeof(call->tensors[0]));
    if (call->inputs == NULL || call->outputs == NULL || call->tensors == NULL) {
        hvd_tf_call_destroy(call);
        return NULL;
    }
    return call;
}

/* Returns the call that the kernel has kept from an earlier run, or a new one. NULL: no
 * memory. */
static struct hvd_tf_call *take_call(struct hvd_tf_kernel *kernel, bool is_on_gpu,
                                     struct TF_OpKernelContext *context)
{
    struct hvd_tf_call *call = atomic_exchange(&kernel->idle, NULL);

    if (call == NULL) {
        call = create_call(kernel);
    }
    if (call != NULL) {
        call->context = context;
        call->is_on_gpu = is_on_gpu;
        call->is_alike = call->awaited.request != NULL;
    }
    return call;
}

/* Keeps the call, without its tensors, for the next run of the node. Returns false if the
 * caller must destroy it instead. The first call is not kept, because many nodes run only
 * once, such as the broadcast of initial variables. Only one call of several parallel
 * runs is kept. */
static bool keep_call(struct hvd_tf_call *call)
{
    struct hvd_tf_kernel *kernel = call->kernel;
    struct hvd_tf_call *none = NULL;

    if (!atomic_exchange(&kernel->has_run, true) || call->is_on_gpu ||
        !hvd_tf_output_is_made(kernel->kind)) {
        return false;
    }
    delete_tensors(call->inputs, kernel->count);
    delete_tensors(call->outputs, kernel->count);
    return atomic_compare_exchange_strong(&kernel->idle, &none, call);
}

/* --- tensors ------------------------------------------------------------------------ */

static struct TF_Tensor *get_input(struct TF_OpKernelContext *context, int index,
                                   struct hvd_error *error)
{
    struct TF_Status *status = tf.NewStatus();
    struct TF_Tensor *tensor = NULL;

    tf.GetInput(context, index, &tensor, status);
    if (tf.GetCode(status) != TF_OK || tensor == NULL) {
        hvd_fail(error, HVD_ERR_ARG,
                 "TensorFlow has not passed input %d of the operation", index);
        tensor = NULL;
    }
    tf.DeleteStatus(status);
    return tensor;
}

/* Copies the shape of the input to the tensor. Returns whether the shape is unchanged. */
static bool copy_shape(const struct TF_Tensor *input, struct hvd_tensor *tensor)
{
    int64_t *shape = (int64_t *)tensor->shape;
    int ndim = tf.NumDims(input);
    bool is_same = shape != NULL && ndim == tensor->ndim;

    if (!is_same) {
        free(shape);
        shape = calloc((size_t)ndim + 1, sizeof(shape[0]));
        tensor->shape = shape;
        tensor->ndim = ndim;
    }
    for (int i = 0; shape != NULL && i < ndim; i++) {
        int64_t length = tf.Dim(input, i);

        is_same = is_same && shape[i] == length;
        shape[i] = length;
    }
    return is_same;
}

/* Fills in tensor `index`, except for its output, from the input with this index. */
static int describe_input(struct hvd_tf_call *call, int index, struct hvd_error *error)
{
    const struct hvd_tf_kernel *kernel = call->kernel;
    struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Tensor *input = get_input(call->context, index, error);
    int dtype;

    if (input == NULL) {
        return error->status;
    }
    call->inputs[index] = input;
    dtype = hvd_dtype_of_tf(tf.TensorType(input));
    if (dtype < 0) {
        return hvd_fail(error, HVD_ERR_ARG,
                        "%s has a data type that hvd does not support",
                        kernel->names[index]);
    }
    call->is_alike &= (int)tensor->dtype == dtype;
    tensor->name = kernel->names[index];
    tensor->dtype = (enum hvd_dtype)dtype;
    tensor->device = call->is_on_gpu ? call->gpu.number : HVD_DEVICE_CPU;
    tensor->stream = call->gpu.stream;
    call->is_alike &= copy_shape(input, tensor);
    tensor->input = tf.TensorData(input);
    return tensor->shape == NULL
               ? hvd_fail(error, HVD_ERR_NOMEM, "no memory for %s", tensor->name)
               : 0;
}

/* --- starting ----------------------------------------------------------------------- */

static int start_alltoall(struct hvd_tf_call *call, struct hvd_error *error)
{
    struct TF_Tensor *splits = get_input(call->context, 1, error);
    int count, status;

    if (splits == NULL) {
        return error->status;
    }
    if (tf.NumDims(splits) != 1) {
        status = hvd_fail(error, HVD_ERR_ARG, "alltoall expects a 1D splits tensor");
    } else {
        count = (int)tf.Dim(splits, 0);
        status =
            hvd_alltoall_start(call->tensors, count > 0 ? tf.TensorData(splits) : NULL,
                               count, call->kernel->set, &call->awaited.request, error);
    }
    tf.DeleteTensor(splits);
    return status;
}

/* Starts the kept request again, on the current memory of the tensors. Returns false, and
 * frees the request, if that is not possible. */
static bool start_again(struct hvd_tf_call *call)
{
    if (call->is_alike &&
        hvd_request_start(call->awaited.request, call->tensors, NULL) == 0) {
        return true;
    }
    hvd_request_free(call->awaited.request); /* for example, the job has changed */
    call->awaited.request = NULL;
    return false;
}

static int start_request(struct hvd_tf_call *call, struct hvd_error *error)
{
    const struct hvd_tf_kernel *kernel = call->kernel;

    switch (kernel->kind) {
    case HVD_TF_ALLREDUCE:
        return hvd_allreduce_start(call->tensors, kernel->count, kernel->op,
                                   kernel->prescale, kernel->postscale, kernel->set,
                                   &call->awaited.request, error);
    case HVD_TF_REDUCESCATTER:
        return hvd_reducescatter_start(call->tensors, kernel->count, kernel->op,
                                       kernel->prescale, kernel->postscale, kernel->set,
                                       &call->awaited.request, error);
    case HVD_TF_ALLGATHER:
        return hvd_allgather_start(call->tensors, kernel->count, kernel->set,
                                   &call->awaited.request, error);
    case HVD_TF_BROADCAST:
        return hvd_broadcast_start(call->tensors, kernel->root, kernel->set,
                                   &call->awaited.request, error);
    case HVD_TF_ALLTOALL:
        return start_alltoall(call, error);
    case HVD_TF_JOIN:
        break;
    }
    return hvd_join_start(&call->awaited.request, error);
}

static int start_call(struct hvd_tf_call *call, struct hvd_error *error)
{
    const struct hvd_tf_kernel *kernel = call->kernel;
    int status = call->is_on_gpu ? hvd_tf_gpu_of(call->context, &call->gpu, error) : 0;

    for (int i = 0; status == 0 && i < kernel->count; i++) {
        status = describe_input(call, i, error);
        if (status == 0 && hvd_tf_output_is_made(kernel->kind)) {
            status = hvd_tf_output_make(call, i, error);
        }
    }
    /* Without a stream, waits until the GPU has computed the inputs and no longer uses
     * the memory of the outputs. */
    if (status == 0 && call->is_on_gpu) {
        status = hvd_tf_gpu_settle(&call->gpu, error);
    }
    if (status != 0 || (call->awaited.request != NULL && start_again(call))) {
        return status;
    }
    return start_request(call, error);
}

struct hvd_tf_call *hvd_tf_call_start(struct hvd_tf_kernel *kernel, bool is_on_gpu,
                                      struct TF_OpKernelContext *context)
{
    struct hvd_tf_call *call = take_call(kernel, is_on_gpu, context);
    struct hvd_error error = {.status = 0};
    int status;

    if (call == NULL) {
        status = hvd_fail(&error, HVD_ERR_NOMEM, "no memory for a call");
    } else {
        status = start_call(call, &error);
        call->awaited.has_stream = call->gpu.has_stream;
        call->awaited.stream = call->gpu.stream;
    }
    if (status != 0) {
        fail_context(context, kernel->kind, status, error.text);
        hvd_tf_call_destroy(call);
        return NULL;
    }
    return call;
}

/* --- ending ------------------------------------------------------------------------- */

void hvd_tf_call_finish(struct hvd_tf_call *call)
{
    struct hvd_error error = {.status = 0};
    int status = hvd_awaited_wait(&call->awaited, -1, &error);

    if (call->kernel->kind == HVD_TF_JOIN) {
        hvd_start_stop();
    }
    if (status != 0) {
        fail_context(call->context, call->kernel->kind, status, error.text);
    } else {
        struct TF_Status *result = tf.NewStatus();

        hvd_tf_outputs_set(call, result);
        if (tf.GetCode(result) != TF_OK) {
            tf.OpKernelContext_Failure(call->context, result);
        }
        tf.DeleteStatus(result);
    }
    if (status != 0 || !keep_call(call)) {
        hvd_tf_call_destroy(call);
    }
}
