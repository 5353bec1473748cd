/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that return the numbers of this rank. */
#include "contrib/python/native/tensorflow/fact.h"

#include <stdlib.h>

#include "collectives/hvd.h"

struct fact {
    int (*read)(int set);
    int set;
};

static int read_rank(int set)
{
    (void)set;
    return hvd_rank();
}

static int read_local_rank(int set)
{
    (void)set;
    return hvd_local_rank();
}

static int read_local_size(int set)
{
    (void)set;
    return hvd_local_size();
}

static int read_included(int set)
{
    int size = hvd_set_size(set);

    return size < 0 ? size : hvd_set_rank(set) >= 0;
}

/* Creates a kernel that calls `read`. has_set: the node has the attribute
 * process_set_id. */
static void *create_kernel(struct TF_OpKernelConstruction *construction, int (*read)(int),
                           bool has_set)
{
    struct TF_Status *status = tf.NewStatus();
    struct fact *fact = calloc(1, sizeof(*fact));
    int64_t set = 0;

    if (fact == NULL) {
        tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
    } else if (has_set) {
        tf.OpKernelConstruction_GetAttrInt64(construction, "process_set_id", &set,
                                             status);
    }
    if (fact == NULL || tf.GetCode(status) != TF_OK) {
        tf.OpKernelConstruction_Failure(construction, status);
        free(fact);
        fact = NULL;
    } else {
        fact->read = read;
        fact->set = (int)set;
    }
    tf.DeleteStatus(status);
    return fact;
}

void *hvd_fact_create_rank(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, read_rank, false);
}

void *hvd_fact_create_local_rank(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, read_local_rank, false);
}

void *hvd_fact_create_local_size(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, read_local_size, false);
}

void *hvd_fact_create_size(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, hvd_set_size, true);
}

void *hvd_fact_create_set_rank(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, hvd_set_rank, true);
}

void *hvd_fact_create_included(struct TF_OpKernelConstruction *construction)
{
    return create_kernel(construction, read_included, true);
}

void hvd_fact_compute(void *kernel, struct TF_OpKernelContext *context)
{
    const struct fact *fact = kernel;
    struct TF_Status *status = tf.NewStatus();
    int value = fact->read(fact->set);

    if (!hvd_is_initialized()) {
        tf.SetStatus(status, TF_FAILED_PRECONDITION,
                     "Horovod has not been initialized; use hvd.init().");
    } else if (value < 0) {
        tf.SetStatus(status, TF_INVALID_ARGUMENT,
                     "Process set provided does not exist, or has not been registered.");
    } else {
        struct TF_Tensor *output =
            tf.AllocateOutput(context, 0, TF_INT32, NULL, 0, sizeof(int32_t), status);

        if (tf.GetCode(status) == TF_OK) {
            *(int32_t *)tf.TensorData(output) = value;
            tf.DeleteTensor(output);
        }
    }
    if (tf.GetCode(status) != TF_OK) {
        tf.OpKernelContext_Failure(context, status);
    }
    tf.DeleteStatus(status);
}

void hvd_fact_delete(void *kernel)
{
    free(kernel);
}
