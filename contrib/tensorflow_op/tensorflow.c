/* SPDX-License-Identifier: Apache-2.0 */
/* Finding TensorFlow's C interface in this process. */
#include "contrib/tensorflow_op/tensorflow.h"

#include <dlfcn.h>
#include <string.h>

struct tensorflow tf;

#define FUNCTION(name)                                                                   \
    {                                                                                    \
        "TF_" #name, offsetof(struct tensorflow, name)                                   \
    }

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
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
    FUNCTION(NewAsyncKernelBuilder),
    FUNCTION(RegisterKernelBuilder),
    FUNCTION(RunAsyncOpKernelDoneCallback),
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

/* Python loads TensorFlow's libraries without making their names global. */
static void *loaded_tensorflow(void)
{
    void *library = dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);

    return library != NULL ? library : RTLD_DEFAULT;
}

const char *hvd_tensorflow_find(void)
{
    void *library = loaded_tensorflow();

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(library, functions[i].name);

        if (address == NULL) {
            return functions[i].name;
        }
        memcpy((char *)&tf + functions[i].offset, &address, sizeof(address));
    }
    return NULL;
}
