/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending the execution of a collective node. */
#include "contrib/tensorflow_op/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "contrib/tensorflow_op/dtype.h"
#include "gpu_binding/error.h"

/* What TensorFlow raises for a failure of libhvd, as Horovod does. */
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

/* What ends a job names the kind of the node, as in HorovodAllreduce, also where the node has a name
 * of the caller's: elastic training knows by it that it is to begin anew. */
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
        }
    }
    free(tensors);
}

static void destroy_call(struct hvd_tf_call *call)
{
    if (call == NULL) {
        return;
    }
    hvd_request_free(call->awaited.request);
    delete_tensors(call->inputs, call->count);
    delete_tensors(call->outputs, call->count);
    for (int i = 0; call->tensors != NULL && i < call->count; i++) {
        free((void *)call->tensors[i].shape);
    }
    free(call->tensors);
    free(call);
}

static struct hvd_tf_call *create_call(const struct hvd_tf_kernel *kernel,
                                       struct TF_OpKernelContext *context)
{
    size_t count = (size_t)kernel->count + 1;
    struct hvd_tf_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    call->context = context;
    call->kind = kernel->kind;
    call->set = kernel->set;
    call->count = kernel->count;
    call->inputs = calloc(count, sizeof(call->inputs[0]));
    call->outputs = calloc(count, sizeof(call->outputs[0]));
    call->tensors = calloc(count, sizeof(call->tensors[0]));
    if (call->inputs == NULL || call->outputs == NULL || call->tensors == NULL) {
        destroy_call(call);
        return NULL;
    }
    return call;
}

/* --- tensors ---------------------------------------------------------------------------- */

static struct TF_Tensor *get_input(struct TF_OpKernelContext *context, int index,
                                   struct hvd_error *error)
{
    struct TF_Status *status = tf.NewStatus();
    struct TF_Tensor *tensor = NULL;

    tf.GetInput(context, index, &tensor, status);
    if (tf.GetCode(status) != TF_OK || tensor == NULL) {
        hvd_fail(error, HVD_ERR_ARG, "input %d of the operation is not there", index);
        tensor = NULL;
    }
    tf.DeleteStatus(status);
    return tensor;
}

static int64_t *copy_shape(const struct TF_Tensor *tensor, int ndim)
{
    int64_t *shape = calloc((size_t)ndim + 1, sizeof(shape[0]));

    for (int i = 0; shape != NULL && i < ndim; i++) {
        shape[i] = tf.Dim(tensor, i);
    }
    return shape;
}

/* Takes input `index` as the tensor of this index, but for its output. */
static int describe_input(struct hvd_tf_call *call, const struct hvd_tf_kernel *kernel,
                          int index, struct hvd_error *error)
{
    struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Tensor *input = get_input(call->context, index, error);
    int dtype;

    if (input == NULL) {
        return error->status;
    }
    call->inputs[index] = input;
    dtype = hvd_dtype_of_tf(tf.TensorType(input));
    if (dtype < 0) {
        return hvd_fail(error, HVD_ERR_ARG, "%s is of a type that cannot be communicated",
                        kernel->names[index]);
    }
    tensor->name = kernel->names[index];
    tensor->dtype = (enum hvd_dtype)dtype;
    tensor->device = HVD_DEVICE_CPU;
    tensor->ndim = tf.NumDims(input);
    tensor->shape = copy_shape(input, tensor->ndim);
    tensor->input = tf.TensorData(input);
    return tensor->shape == NULL
               ? hvd_fail(error, HVD_ERR_NOMEM, "no memory for %s", tensor->name)
               : 0;
}

/* The rows that this rank gets of a reducescatter. */
static int64_t part_of(int64_t rows, int set)
{
    int64_t size = hvd_set_size(set), rank = hvd_set_rank(set);

    return size < 1 || rank < 0 ? 0 : rows / size + (rank < rows % size ? 1 : 0);
}

/* Makes an output of the shape of the tensor, but for its rows, in new memory. */
static struct TF_Tensor *new_output(struct hvd_tf_call *call, int index, int64_t rows,
                                    struct TF_Status *status)
{
    const struct hvd_tensor *tensor = &call->tensors[index];
    int64_t *shape = (int64_t *)tensor->shape, own_rows = shape[0];
    size_t bytes = hvd_dtype_bytes(tensor->dtype);
    struct TF_Tensor *output;

    shape[0] = tensor->ndim > 0 ? rows : own_rows;
    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)shape[i];
    }
    output = tf.AllocateOutput(call->context, index, tf.TensorType(call->inputs[index]),
                               shape, tensor->ndim, bytes, status);
    shape[0] = own_rows;
    return output;
}

/* Makes an output like the input, in its memory where nobody else needs that. */
static struct TF_Tensor *like_input(struct hvd_tf_call *call, int index,
                                    struct TF_Status *status)
{
    const struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Tensor *output;
    int forwarded = -1;

    tf.DeleteTensor(call->inputs[index]); /* its reference is one too many to forward */
    call->inputs[index] = NULL;
    output = tf.ForwardInputOrAllocateOutput(
        call->context, &index, 1, index, tensor->shape, tensor->ndim, &forwarded, status);
    if (tf.GetCode(status) == TF_OK) {
        tf.GetInput(call->context, index, &call->inputs[index], status);
    }
    return output;
}

static int make_output(struct hvd_tf_call *call, int index, struct hvd_error *error)
{
    struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Status *status = tf.NewStatus();
    int result = 0;

    if (call->kind == HVD_TF_REDUCESCATTER) {
        int64_t rows = tensor->ndim > 0 ? part_of(tensor->shape[0], call->set) : 0;

        call->outputs[index] = new_output(call, index, rows, status);
    } else {
        call->outputs[index] = like_input(call, index, status);
    }
    if (tf.GetCode(status) != TF_OK) {
        result =
            hvd_fail(error, HVD_ERR_NOMEM, "no memory for the output %s", tensor->name);
    } else {
        tensor->input = tf.TensorData(call->inputs[index]);
        tensor->output = tf.TensorData(call->outputs[index]);
    }
    tf.DeleteStatus(status);
    return result;
}

static bool allocates_output(enum hvd_tf_kind kind)
{
    return kind == HVD_TF_ALLREDUCE || kind == HVD_TF_BROADCAST ||
           kind == HVD_TF_REDUCESCATTER;
}

/* --- starting ---------------------------------------------------------------------------- */

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
                               count, call->set, &call->awaited.request, error);
    }
    tf.DeleteTensor(splits);
    return status;
}

static int start_request(struct hvd_tf_call *call, const struct hvd_tf_kernel *kernel,
                         struct hvd_error *error)
{
    switch (kernel->kind) {
    case HVD_TF_ALLREDUCE:
        return hvd_allreduce_start(call->tensors, call->count, kernel->op,
                                   kernel->prescale, kernel->postscale, kernel->set,
                                   &call->awaited.request, error);
    case HVD_TF_REDUCESCATTER:
        return hvd_reducescatter_start(call->tensors, call->count, kernel->op,
                                       kernel->prescale, kernel->postscale, kernel->set,
                                       &call->awaited.request, error);
    case HVD_TF_ALLGATHER:
        return hvd_allgather_start(call->tensors, call->count, kernel->set,
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

static int start_call(struct hvd_tf_call *call, const struct hvd_tf_kernel *kernel,
                      struct hvd_error *error)
{
    int status = 0;

    for (int i = 0; status == 0 && i < call->count; i++) {
        status = describe_input(call, kernel, i, error);
        if (status == 0 && allocates_output(call->kind)) {
            status = make_output(call, i, error);
        }
    }
    return status != 0 ? status : start_request(call, kernel, error);
}

struct hvd_tf_call *hvd_tf_call_start(const struct hvd_tf_kernel *kernel,
                                      struct TF_OpKernelContext *context)
{
    struct hvd_tf_call *call = create_call(kernel, context);
    struct hvd_error error = {.status = 0};
    int status = call == NULL ? hvd_fail(&error, HVD_ERR_NOMEM, "no memory for a call")
                              : start_call(call, kernel, &error);

    if (status != 0) {
        fail_context(context, kernel->kind, status, error.text);
        destroy_call(call);
        return NULL;
    }
    return call;
}

/* --- ending ------------------------------------------------------------------------------ */

static void give_back(void *data, size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    hvd_free(data);
}

static void set_output(struct hvd_tf_call *call, int index, struct TF_Tensor *output,
                       struct TF_Status *status)
{
    if (output != NULL) {
        tf.SetOutput(call->context, index, output, status);
        tf.DeleteTensor(output);
    }
}

/* Hands over, without a copy, what libhvd allocated. */
static void set_taken(struct hvd_tf_call *call, int index, struct TF_Status *status)
{
    const struct hvd_tensor *tensor = &call->tensors[index];
    int64_t *shape = (int64_t *)tensor->shape, rows;
    size_t bytes = hvd_dtype_bytes(tensor->dtype);
    struct TF_Tensor *output;
    void *data;

    if (hvd_request_take(call->awaited.request, index, &data, &rows) != 0) {
        tf.SetStatus(status, TF_UNKNOWN, "a finished request has no output");
        return;
    }
    if (data == NULL) {
        call->outputs[index] = new_output(call, index, rows, status);
        return;
    }
    shape[0] = rows;
    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)shape[i];
    }
    output = tf.NewTensor(tf.TensorType(call->inputs[index]), shape, tensor->ndim, data,
                          bytes, give_back, NULL);
    set_output(call, index, output, status);
}

static void set_numbers(struct hvd_tf_call *call, int index, const int32_t *numbers,
                        int64_t count, struct TF_Status *status)
{
    struct TF_Tensor *output =
        tf.AllocateOutput(call->context, index, TF_INT32, &count, count < 0 ? 0 : 1,
                          (size_t)(count < 0 ? 1 : count) * sizeof(int32_t), status);

    if (tf.GetCode(status) == TF_OK) {
        int32_t *to = tf.TensorData(output);

        for (int64_t i = 0; i < (count < 0 ? 1 : count); i++) {
            to[i] = numbers[i];
        }
        tf.DeleteTensor(output);
    }
}

static void set_received(struct hvd_tf_call *call, struct TF_Status *status)
{
    int size = hvd_set_size(call->set);
    int32_t *received = calloc((size_t)(size > 0 ? size : 1), sizeof(received[0]));

    if (received == NULL || hvd_request_splits(call->awaited.request, received) != 0) {
        tf.SetStatus(status, TF_UNKNOWN, "a finished alltoall has no received splits");
    } else {
        set_numbers(call, 1, received, size, status);
    }
    free(received);
}

static void set_outputs(struct hvd_tf_call *call, struct TF_Status *status)
{
    for (int i = 0;
         i < call->count && !allocates_output(call->kind) && tf.GetCode(status) == TF_OK;
         i++) {
        set_taken(call, i, status);
    }
    if (call->kind == HVD_TF_ALLTOALL && tf.GetCode(status) == TF_OK) {
        set_received(call, status);
    }
    if (call->kind == HVD_TF_JOIN) {
        int32_t last = hvd_request_last_rank(call->awaited.request);

        set_numbers(call, 0, &last, -1, status);
    }
}

void hvd_tf_call_finish(struct hvd_tf_call *call, int status,
                        const struct hvd_error *error)
{
    if (status != 0) {
        fail_context(call->context, call->kind, status, error->text);
    } else {
        struct TF_Status *result = tf.NewStatus();

        set_outputs(call, result);
        if (tf.GetCode(result) != TF_OK) {
            tf.OpKernelContext_Failure(call->context, result);
        }
        tf.DeleteStatus(result);
    }
    destroy_call(call);
}
