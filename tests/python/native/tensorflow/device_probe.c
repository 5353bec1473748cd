/* SPDX-License-Identifier: Apache-2.0 */
/* An operation for the real TensorFlow. It returns 1 if its kernel finds the device on
 * which it runs: it looks for a CPU device where hvd_tensorflow.so looks for a GPU. */
#include "contrib/python/native/tensorflow/object.h"
#include "contrib/python/native/tensorflow/shapes.h"
#include "gpu_binding/base/attr.h"

static void *create(struct TF_OpKernelConstruction *construction)
{
    return construction;
}

static void delete (void *kernel)
{
    (void)kernel;
}

static void compute(void *kernel, struct TF_OpKernelContext *context)
{
    static const char *const types[] = {"N10tensorflow16ThreadPoolDeviceE",
                                        "N10tensorflow22GPUCompatibleCPUDeviceE"};
    struct TF_Status *status = tf.NewStatus();
    struct TF_Tensor *output =
        tf.AllocateOutput(context, 0, TF_INT32, NULL, 0, sizeof(int32_t), status);
    int32_t *is_found = tf.TensorData(output);

    (void)kernel;
    *is_found = 0;
    for (int i = 0; i < 2; i++) {
        *is_found |= hvd_tf_object_device(context, types[i]) != NULL;
    }
    *is_found &= hvd_tf_object_device(context, "N10tensorflow9GPUDeviceE") == NULL;
    tf.DeleteTensor(output);
    tf.DeleteStatus(status);
}

HVD_CONSTRUCTOR static void define(void)
{
    struct TF_OpDefinitionBuilder *builder;
    struct TF_Status *status;

    if (hvd_tensorflow_find() != NULL) {
        return;
    }
    status = tf.NewStatus();
    builder = tf.NewOpDefinitionBuilder("HorovodTestDevice");
    tf.OpDefinitionBuilderAddOutput(builder, "found: int32");
    tf.OpDefinitionBuilderSetIsStateful(builder, true);
    tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, hvd_shapes_number);
    tf.RegisterOpDefinition(builder, status);
    tf.RegisterKernelBuilder(
        "HorovodTestDevice",
        tf.NewKernelBuilder("HorovodTestDevice", "CPU", create, compute, delete), status);
    tf.DeleteStatus(status);
}
