/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a collective node. */
#include "contrib/python/native/tensorflow/output.h"

#include <stdlib.h>

#include "gpu_binding/base/error.h"

/* --- before the collective ---------------------------------------------------------- */

/* Returns the number of rows of this rank's part in a reducescatter. */
static int64_t part_of(int64_t rows, int set)
{
    int64_t size = hvd_set_size(set), rank = hvd_set_rank(set);

    return size < 1 || rank < 0 ? 0 : rows / size + (rank < rows % size ? 1 : 0);
}

/* Allocates an output with `rows` rows and otherwise the shape of the tensor. */
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

/* Makes an output with the shape of the input. Uses the memory of the input if nothing
 * else uses it. */
static struct TF_Tensor *like_input(struct hvd_tf_call *call, int index,
                                    struct TF_Status *status)
{
    const struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Tensor *output;
    int forwarded = -1;

    /* Drop this reference first: TensorFlow uses the memory of the input for the output
     * only if there is no second reference. */
    tf.DeleteTensor(call->inputs[index]);
    call->inputs[index] = NULL;
    output = tf.ForwardInputOrAllocateOutput(
        call->context, &index, 1, index, tensor->shape, tensor->ndim, &forwarded, status);
    if (tf.GetCode(status) == TF_OK) {
        tf.GetInput(call->context, index, &call->inputs[index], status);
    }
    return output;
}

int hvd_tf_output_make(struct hvd_tf_call *call, int index, struct hvd_error *error)
{
    struct hvd_tensor *tensor = &call->tensors[index];
    struct TF_Status *status = tf.NewStatus();
    int result = 0;

    if (call->kernel->kind == HVD_TF_REDUCESCATTER) {
        int64_t rows =
            tensor->ndim > 0 ? part_of(tensor->shape[0], call->kernel->set) : 0;

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

bool hvd_tf_output_is_made(enum hvd_tf_kind kind)
{
    return kind == HVD_TF_ALLREDUCE || kind == HVD_TF_BROADCAST ||
           kind == HVD_TF_REDUCESCATTER;
}

/* --- after the collective ----------------------------------------------------------- */

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

static void fail_output(struct TF_Status *status, const char *text)
{
    tf.SetStatus(status, TF_UNKNOWN, text);
}

/* Copies an output that libhvd allocated on a GPU to memory that TensorFlow allocates.
 * TensorFlow orders the uses of its own memory by its stream, so it knows how long the
 * memory is in use. */
static void set_copied(struct hvd_tf_call *call, int index, struct TF_Status *status)
{
    struct hvd_error error = {.status = 0};
    int64_t rows;
    int result;

    if (hvd_request_rows(call->awaited.request, index, &rows) != 0) {
        fail_output(status, "a launched request has no output");
        return;
    }
    call->outputs[index] = new_output(call, index, rows, status);
    if (tf.GetCode(status) != TF_OK) {
        return;
    }
    result = hvd_tf_gpu_settle(&call->gpu, &error);
    if (result == 0) {
        result = hvd_request_copy(call->awaited.request, index,
                                  tf.TensorData(call->outputs[index]), call->gpu.stream,
                                  &error);
    }
    if (result == 0) {
        result = hvd_tf_gpu_settle(&call->gpu, &error);
    }
    if (result != 0) {
        fail_output(status, error.text);
    }
}

/* Hands an output that libhvd allocated over to TensorFlow, without a copy. */
static void set_taken(struct hvd_tf_call *call, int index, struct TF_Status *status)
{
    const struct hvd_tensor *tensor = &call->tensors[index];
    int64_t *shape = (int64_t *)tensor->shape, rows;
    size_t bytes = hvd_dtype_bytes(tensor->dtype);
    struct TF_Tensor *output;
    void *data;

    if (hvd_request_take(call->awaited.request, index, &data, &rows) != 0) {
        fail_output(status, "a finished request has no output");
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
    int size = hvd_set_size(call->kernel->set);
    int32_t *received = calloc((size_t)(size > 0 ? size : 1), sizeof(received[0]));

    if (received == NULL || hvd_request_splits(call->awaited.request, received) != 0) {
        fail_output(status, "a finished alltoall has no received splits");
    } else {
        set_numbers(call, 1, received, size, status);
    }
    free(received);
}

void hvd_tf_outputs_set(struct hvd_tf_call *call, struct TF_Status *status)
{
    for (int i = 0;
         i < call->kernel->count && !hvd_tf_output_is_made(call->kernel->kind) &&
         tf.GetCode(status) == TF_OK;
         i++) {
        if (call->is_on_gpu) {
            set_copied(call, i, status);
        } else {
            set_taken(call, i, status);
        }
    }
    if (call->kernel->kind == HVD_TF_ALLTOALL && tf.GetCode(status) == TF_OK) {
        set_received(call, status);
    }
    if (call->kernel->kind == HVD_TF_JOIN) {
        int32_t last = hvd_request_last_rank(call->awaited.request);

        set_numbers(call, 0, &last, -1, status);
    }
}
