/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of outputs, for the construction of graphs. */
#include "contrib/python/native/tensorflow/shapes.h"

static const size_t unknown_size = (size_t)-1; /* InferenceContext::kUnknownDim */

static bool is_good(struct TF_Status *status)
{
    return tf.GetCode(status) == TF_OK;
}

/* Gives output `index` the shape of input `index`. */
static void set_same(struct TF_ShapeInferenceContext *context, int index,
                     struct TF_Status *status)
{
    struct TF_ShapeHandle *shape = tf.NewShapeHandle();

    tf.ShapeInferenceContextGetInput(context, index, shape, status);
    if (is_good(status)) {
        tf.ShapeInferenceContextSetOutput(context, index, shape, status);
    }
    tf.DeleteShapeHandle(shape);
}

/* Like set_same, with an unknown number of rows. A scalar, which the collective rejects
 * later, stays a scalar. */
static void set_rows(struct TF_ShapeInferenceContext *context, int index,
                     struct TF_Status *status)
{
    struct TF_ShapeHandle *shape = tf.NewShapeHandle(), *row = tf.NewShapeHandle(),
                          *result = tf.NewShapeHandle(),
                          *rows = tf.ShapeInferenceContextVectorFromSize(context,
                                                                         unknown_size);

    tf.ShapeInferenceContextGetInput(context, index, shape, status);
    if (is_good(status) && tf.ShapeInferenceContextRank(context, shape) != 0) {
        tf.ShapeInferenceContextSubshape(context, shape, 1, INT64_MAX, row, status);
        if (is_good(status)) {
            tf.ShapeInferenceContextConcatenateShapes(context, rows, row, result, status);
        }
        if (is_good(status)) {
            tf.ShapeInferenceContextSetOutput(context, index, result, status);
        }
    } else if (is_good(status)) {
        tf.ShapeInferenceContextSetOutput(context, index, shape, status);
    }
    tf.DeleteShapeHandle(shape);
    tf.DeleteShapeHandle(row);
    tf.DeleteShapeHandle(result);
    tf.DeleteShapeHandle(rows);
}

void hvd_shapes_same(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    int count = (int)tf.ShapeInferenceContextNumInputs(context);

    tf.SetStatus(status, TF_OK, "");
    for (int i = 0; i < count && is_good(status); i++) {
        set_same(context, i, status);
    }
}

void hvd_shapes_rows(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    int count = (int)tf.ShapeInferenceContextNumInputs(context);

    tf.SetStatus(status, TF_OK, "");
    for (int i = 0; i < count && is_good(status); i++) {
        set_rows(context, i, status);
    }
}

void hvd_shapes_rows_and_vector(struct TF_ShapeInferenceContext *context,
                                struct TF_Status *status)
{
    struct TF_ShapeHandle *vector =
        tf.ShapeInferenceContextVectorFromSize(context, unknown_size);

    tf.SetStatus(status, TF_OK, "");
    set_rows(context, 0, status);
    if (is_good(status)) {
        tf.ShapeInferenceContextSetOutput(context, 1, vector, status);
    }
    tf.DeleteShapeHandle(vector);
}

void hvd_shapes_number(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    struct TF_ShapeHandle *scalar = tf.ShapeInferenceContextScalar(context);

    tf.SetStatus(status, TF_OK, "");
    tf.ShapeInferenceContextSetOutput(context, 0, scalar, status);
    tf.DeleteShapeHandle(scalar);
}
