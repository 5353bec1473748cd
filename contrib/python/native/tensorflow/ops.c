/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that this library adds to TensorFlow when tf.load_op_library loads it.
 *
 * All operations are stateful, so that TensorFlow neither evaluates them while it
 * optimizes a graph, nor merges or removes them: all ranks must run the same ones. Python
 * tells tf.function that they may run in any order. */
#include "contrib/python/native/tensorflow/call.h"
#include "contrib/python/native/tensorflow/fact.h"
#include "contrib/python/native/tensorflow/shapes.h"
#include "contrib/python/native/tensorflow/start.h"
#include "gpu_binding/base/attr.h"

#define TYPES                                                                            \
    "{uint8, int8, uint16, int16, uint32, int32, uint64, int64, half, bfloat16, float, " \
    "double, bool}"

/* An operation, in the syntax of TensorFlow's specifications; NULL ends a list. */
struct operation {
    const char *name;
    tf_create_function *create;
    tf_shape_function *shapes;
    const char *inputs[3];
    const char *outputs[3];
    const char *attributes[9];
    /* inputs and outputs that are in host memory even if the kernel runs on a GPU */
    const char *on_host[3];
    /* computes a number on the CPU, without waiting for other ranks; NULL: the operation
     * is a collective */
    tf_compute_function *compute;
    tf_delete_function *destroy;
};

static void *create_allreduce(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_ALLREDUCE);
}

static void *create_allgather(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_ALLGATHER);
}

static void *create_broadcast(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_BROADCAST);
}

static void *create_alltoall(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_ALLTOALL);
}

static void *create_reducescatter(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_REDUCESCATTER);
}

static void *create_join(struct TF_OpKernelConstruction *construction)
{
    return hvd_tf_kernel_create(construction, HVD_TF_JOIN);
}

#define COMMON                                                                           \
    "tensor_name: string = ''", "ignore_name_scope: bool = false",                       \
        "process_set_id: int = 0", "blocks: bool = false"
#define REDUCTION                                                                        \
    "reduce_op: int", "prescale_factor: string = '1.0'",                                 \
        "postscale_factor: string = '1.0'"

static const struct operation operations[] = {
    {
        .name = "HorovodAllreduce",
        .create = create_allreduce,
        .shapes = hvd_shapes_same,
        .inputs = {"tensors: T"},
        .outputs = {"reduced: T"},
        .attributes = {"T: list(" TYPES ") >= 1", REDUCTION, COMMON},
    },
    {
        .name = "HorovodReducescatter",
        .create = create_reducescatter,
        .shapes = hvd_shapes_rows,
        .inputs = {"tensors: T"},
        .outputs = {"parts: T"},
        .attributes = {"T: list(" TYPES ") >= 1", REDUCTION, COMMON},
    },
    {
        .name = "HorovodAllgather",
        .create = create_allgather,
        .shapes = hvd_shapes_rows,
        .inputs = {"tensors: T"},
        .outputs = {"gathered: T"},
        .attributes = {"T: list(" TYPES ") >= 1", COMMON},
    },
    {
        .name = "HorovodBroadcast",
        .create = create_broadcast,
        .shapes = hvd_shapes_same,
        .inputs = {"tensor: T"},
        .outputs = {"same: T"},
        .attributes = {"T: " TYPES, "root_rank: int", COMMON},
    },
    {
        .name = "HorovodAlltoall",
        .create = create_alltoall,
        .shapes = hvd_shapes_rows_and_vector,
        .inputs = {"tensor: T", "splits: int32"},
        .outputs = {"received: T", "received_splits: int32"},
        .on_host = {"splits", "received_splits"},
        .attributes = {"T: " TYPES, COMMON},
    },
    {
        .name = "HorovodJoin",
        .create = create_join,
        .shapes = hvd_shapes_number,
        .outputs = {"last_rank: int32"},
        .attributes = {"blocks: bool = false"},
    },
    {
        .name = "HorovodRank",
        .create = hvd_fact_create_rank,
        .shapes = hvd_shapes_number,
        .outputs = {"rank: int32"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodLocalRank",
        .create = hvd_fact_create_local_rank,
        .shapes = hvd_shapes_number,
        .outputs = {"rank: int32"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodLocalSize",
        .create = hvd_fact_create_local_size,
        .shapes = hvd_shapes_number,
        .outputs = {"size: int32"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodSize",
        .create = hvd_fact_create_size,
        .shapes = hvd_shapes_number,
        .outputs = {"size: int32"},
        .attributes = {"process_set_id: int = 0"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodProcessSetRank",
        .create = hvd_fact_create_set_rank,
        .shapes = hvd_shapes_number,
        .outputs = {"rank: int32"},
        .attributes = {"process_set_id: int = 0"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodProcessSetIncluded",
        .create = hvd_fact_create_included,
        .shapes = hvd_shapes_number,
        .outputs = {"included: int32"},
        .attributes = {"process_set_id: int = 0"},
        .compute = hvd_fact_compute,
        .destroy = hvd_fact_delete,
    },
    {
        .name = "HorovodStartStep",
        .create = hvd_start_create,
        .shapes = hvd_shapes_number,
        .outputs = {"is_due: int32"},
        .attributes = {"tensor_name: string", "process_set_id: int"},
        .compute = hvd_start_compute_step,
        .destroy = hvd_start_delete,
    },
    {
        .name = "HorovodStartCompare",
        .create = hvd_start_create,
        .shapes = hvd_shapes_number,
        .inputs = {"sums: double"},
        .outputs = {"none: int32"},
        .attributes = {"tensor_name: string", "process_set_id: int"},
        .compute = hvd_start_compute_compare,
        .destroy = hvd_start_delete,
    },
};

static void run_done(struct TF_AsyncOpKernelDoneCallback *callback)
{
    tf.RunAsyncOpKernelDoneCallback(callback);
}

static void finish_call(struct hvd_awaited *awaited)
{
    struct hvd_tf_call *call = (struct hvd_tf_call *)awaited;
    struct hvd_done done = call->done;

    hvd_tf_call_finish(call);
    hvd_done_run(&done);
}

/* Starts a node. A graph has few threads, which run its nodes in an order of their own.
 * If a thread waited for other ranks, it could block the node for which those ranks wait.
 * So nodes only submit their collectives, and the waiter's thread waits for all. */
static void run_node(struct hvd_tf_kernel *node, bool is_on_gpu,
                     struct TF_OpKernelContext *context,
                     struct TF_AsyncOpKernelDoneCallback *callback)
{
    /* With one rank there is no wait. */
    bool blocks = node->blocks || hvd_size() == 1 || hvd_waiter_start(NULL) != 0;
    struct hvd_tf_call *call = hvd_tf_call_start(node, is_on_gpu, context);

    if (call == NULL) {
        run_done(callback);
    } else if (blocks || !hvd_done_take(callback, &call->done)) {
        hvd_tf_call_finish(call);
        run_done(callback);
    } else {
        call->awaited.ended = finish_call;
        hvd_waiter_add(&call->awaited);
    }
}

static void compute_node(void *kernel, struct TF_OpKernelContext *context,
                         struct TF_AsyncOpKernelDoneCallback *callback)
{
    run_node(kernel, false, context, callback);
}

static void compute_on_gpu(void *kernel, struct TF_OpKernelContext *context,
                           struct TF_AsyncOpKernelDoneCallback *callback)
{
    run_node(kernel, true, context, callback);
}

/* Runs a node in a TensorFlow without asynchronous kernels. */
static void run_here(struct hvd_tf_kernel *node, bool is_on_gpu,
                     struct TF_OpKernelContext *context)
{
    struct hvd_tf_call *call = hvd_tf_call_start(node, is_on_gpu, context);

    if (call != NULL) {
        hvd_tf_call_finish(call);
    }
}

static void compute_here(void *kernel, struct TF_OpKernelContext *context)
{
    run_here(kernel, false, context);
}

static void compute_here_on_gpu(void *kernel, struct TF_OpKernelContext *context)
{
    run_here(kernel, true, context);
}

static struct TF_KernelBuilder *collective_builder(const struct operation *operation,
                                                   bool is_on_gpu)
{
    const char *device = is_on_gpu ? "GPU" : "CPU";

    return hvd_tensorflow_nodes_wait()
               ? tf.NewKernelBuilder(operation->name, device, operation->create,
                                     is_on_gpu ? compute_here_on_gpu : compute_here,
                                     hvd_tf_kernel_destroy)
               : tf.NewAsyncKernelBuilder(operation->name, device, operation->create,
                                          is_on_gpu ? compute_on_gpu : compute_node,
                                          hvd_tf_kernel_destroy);
}

static void define(const struct operation *operation, struct TF_Status *status)
{
    struct TF_OpDefinitionBuilder *builder = tf.NewOpDefinitionBuilder(operation->name);

    for (int i = 0; operation->attributes[i] != NULL; i++) {
        tf.OpDefinitionBuilderAddAttr(builder, operation->attributes[i]);
    }
    for (int i = 0; operation->inputs[i] != NULL; i++) {
        tf.OpDefinitionBuilderAddInput(builder, operation->inputs[i]);
    }
    for (int i = 0; operation->outputs[i] != NULL; i++) {
        tf.OpDefinitionBuilderAddOutput(builder, operation->outputs[i]);
    }
    tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, operation->shapes);
    tf.OpDefinitionBuilderSetIsStateful(builder, true);
    tf.RegisterOpDefinition(builder, status);
}

static void implement(const struct operation *operation, struct TF_Status *status)
{
    struct TF_KernelBuilder *builder =
        operation->compute != NULL
            ? tf.NewKernelBuilder(operation->name, "CPU", operation->create,
                                  operation->compute, operation->destroy)
            : collective_builder(operation, false);

    tf.RegisterKernelBuilder(operation->name, builder, status);
}

/* Registers the kernel for GPUs, except for operations that TensorFlow runs on the CPU:
 * those without tensors, and those that only compute. */
static void implement_on_gpu(const struct operation *operation, struct TF_Status *status)
{
    struct TF_KernelBuilder *builder;

    if (operation->inputs[0] == NULL || operation->compute != NULL) {
        return;
    }
    builder = collective_builder(operation, true);
    for (int i = 0; operation->on_host[i] != NULL; i++) {
        tf.KernelBuilder_HostMemory(builder, operation->on_host[i]);
    }
    tf.RegisterKernelBuilder(operation->name, builder, status);
}

/* Registers the operations when the library is loaded. If TensorFlow lacks a function,
 * registers none; Python then raises an ImportError. */
HVD_CONSTRUCTOR static void register_operations(void)
{
    struct TF_Status *status;
    bool has_gpus;

    if (hvd_tensorflow_find() != NULL) {
        return;
    }
    has_gpus = hvd_tf_gpu_open();
    status = tf.NewStatus();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        define(&operations[i], status);
        if (tf.GetCode(status) == TF_OK) {
            implement(&operations[i], status);
        }
        if (tf.GetCode(status) == TF_OK && has_gpus) {
            implement_on_gpu(&operations[i], status);
        }
    }
    tf.DeleteStatus(status);
}
