/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up TensorFlow's C interface in this process. */
#include "contrib/python/native/tensorflow/tensorflow.h"

#include <dlfcn.h>
#include <string.h>

struct tensorflow tf;

#define FUNCTION(name)                                                                   \
    {                                                                                    \
        "TF_" #name, offsetof(struct tensorflow, name)                                   \
    }

struct function {
    const char *name;
    size_t offset;
};

/* These exist since TensorFlow 2.13. */
static const struct function async_functions[] = {
    FUNCTION(NewAsyncKernelBuilder),
    FUNCTION(RunAsyncOpKernelDoneCallback),
};

/* Needed for kernels on GPUs only. */
static const struct function gpu_functions[] = {
    FUNCTION(KernelBuilder_HostMemory),
};

static const struct function functions[] = {
    FUNCTION(NewStatus),
    FUNCTION(DeleteStatus),
    FUNCTION(SetStatus),
    FUNCTION(GetCode),
    FUNCTION(NewOpDefinitionBuilder),
    FUNCTION(OpDefinitionBuilderAddAttr),
    FUNCTION(OpDefinitionBuilderAddInput),
    FUNCTION(OpDefinitionBuilderAddOutput),
    FUNCTION(OpDefinitionBuilderSetIsStateful),
    FUNCTION(OpDefinitionBuilderSetShapeInferenceFunction),
    FUNCTION(RegisterOpDefinition),
    FUNCTION(NewKernelBuilder),
    FUNCTION(RegisterKernelBuilder),
    FUNCTION(OpKernelConstruction_GetAttrSize),
    FUNCTION(OpKernelConstruction_GetAttrString),
    FUNCTION(OpKernelConstruction_GetAttrInt64),
    FUNCTION(OpKernelConstruction_GetAttrBool),
    FUNCTION(OpKernelConstruction_GetName),
    FUNCTION(OpKernelConstruction_Failure),
    FUNCTION(NumInputs),
    FUNCTION(GetInput),
    FUNCTION(SetOutput),
    FUNCTION(AllocateOutput),
    FUNCTION(ForwardInputOrAllocateOutput),
    FUNCTION(OpKernelContext_Failure),
    FUNCTION(NewTensor),
    FUNCTION(DeleteTensor),
    FUNCTION(TensorType),
    FUNCTION(NumDims),
    FUNCTION(Dim),
    FUNCTION(TensorData),
    FUNCTION(TensorByteSize),
    FUNCTION(NewShapeHandle),
    FUNCTION(DeleteShapeHandle),
    FUNCTION(ShapeInferenceContextNumInputs),
    FUNCTION(ShapeInferenceContextGetInput),
    FUNCTION(ShapeInferenceContextSetOutput),
    FUNCTION(ShapeInferenceContextScalar),
    FUNCTION(ShapeInferenceContextVectorFromSize),
    FUNCTION(ShapeInferenceContextRank),
    FUNCTION(ShapeInferenceContextSubshape),
    FUNCTION(ShapeInferenceContextConcatenateShapes),
};

/* Python loads TensorFlow's libraries without making their symbols global, so look the
 * library up by name. */
void *hvd_tensorflow_library(void)
{
    void *library = dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);

    return library != NULL ? library : RTLD_DEFAULT;
}

/* Looks up the functions. Returns the name of the first one that is missing, or NULL. */
static const char *find_all(void *library, const struct function *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, wanted[i].name);

        if (address == NULL) {
            return wanted[i].name;
        }
        memcpy((char *)&tf + wanted[i].offset, &address, sizeof(address));
    }
    return NULL;
}

const char *hvd_tensorflow_find(void)
{
    void *library = hvd_tensorflow_library();

    find_all(library, async_functions,
             sizeof(async_functions) / sizeof(async_functions[0]));
    find_all(library, gpu_functions, sizeof(gpu_functions) / sizeof(gpu_functions[0]));
    return find_all(library, functions, sizeof(functions) / sizeof(functions[0]));
}

bool hvd_tensorflow_nodes_wait(void)
{
    return tf.NewAsyncKernelBuilder == NULL || tf.RunAsyncOpKernelDoneCallback == NULL;
}
