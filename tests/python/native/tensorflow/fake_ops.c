/* SPDX-License-Identifier: Apache-2.0 */
/* The C functions of the TensorFlow stand-in that define operations. They must exist but
 * do nothing. */
#include "tests/python/native/tensorflow/fake_tensorflow.h"

HVD_EXPORT struct TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *op)
{
    (void)op;
    return NULL;
}

#define IGNORE_TEXT(name)                                                                \
    HVD_EXPORT void name(struct TF_OpDefinitionBuilder *builder, const char *text)       \
    {                                                                                    \
        (void)builder;                                                                   \
        (void)text;                                                                      \
    }

IGNORE_TEXT(TF_OpDefinitionBuilderAddAttr)
IGNORE_TEXT(TF_OpDefinitionBuilderAddInput)
IGNORE_TEXT(TF_OpDefinitionBuilderAddOutput)

HVD_EXPORT void
TF_OpDefinitionBuilderSetIsStateful(struct TF_OpDefinitionBuilder *builder,
                                    bool is_stateful)
{
    (void)builder;
    (void)is_stateful;
}

HVD_EXPORT void
TF_OpDefinitionBuilderSetShapeInferenceFunction(struct TF_OpDefinitionBuilder *builder,
                                                tf_shape_function *shapes)
{
    (void)builder;
    (void)shapes;
}

HVD_EXPORT void TF_RegisterOpDefinition(struct TF_OpDefinitionBuilder *builder,
                                        struct TF_Status *status)
{
    (void)builder;
    (void)status;
}

/* TensorFlow infers shapes when it builds a graph, which the tests never do. */
#define NEVER_CALLED(name)                                                               \
    HVD_EXPORT void name(void)                                                           \
    {                                                                                    \
    }

NEVER_CALLED(TF_NewShapeHandle)
NEVER_CALLED(TF_DeleteShapeHandle)
NEVER_CALLED(TF_ShapeInferenceContextNumInputs)
NEVER_CALLED(TF_ShapeInferenceContextGetInput)
NEVER_CALLED(TF_ShapeInferenceContextSetOutput)
NEVER_CALLED(TF_ShapeInferenceContextScalar)
NEVER_CALLED(TF_ShapeInferenceContextVectorFromSize)
NEVER_CALLED(TF_ShapeInferenceContextRank)
NEVER_CALLED(TF_ShapeInferenceContextSubshape)
NEVER_CALLED(TF_ShapeInferenceContextConcatenateShapes)
