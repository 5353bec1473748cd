/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise arithmetic on arrays of every dtype. Pure; any thread.
 *
 * A partial result of a 16-bit float is kept in float and rounded only at the end; the
 * partial of every other type is the type itself. */
#ifndef HVD_REDUCE_H
#define HVD_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

struct hvd_kernels;

/* Filled in by hvd_reduction_of. */
struct hvd_reduction {
    const struct hvd_kernels *kernels; /* kernels of dtype for this CPU */
    enum hvd_dtype dtype;
    size_t element_bytes; /* bytes of one element of dtype */
    /* AVERAGE is SUM with a divisor set by the caller; ADASUM is not allowed */
    enum hvd_op op;
    /* 16-bit floats only: applied to elements as they are converted to float */
    double prescale;
    /* Applied when the result is written as dtype rather than as a partial: postscale *
     * result / divisor. */
    double postscale;
    bool from_partial; /* sources hold partial results; false: elements of dtype */
    bool to_partial; /* out receives partial results; false: elements of dtype */
    uint32_t divisor; /* 0 and 1 mean none */
};

/* Returns the reduction by op of elements of dtype, without factors and divisor, which
 * the caller may set. */
struct hvd_reduction hvd_reduction_of(enum hvd_dtype dtype, enum hvd_op op);

/* Returns the bytes of one partial result: 4 for float16 and bfloat16, else
 * hvd_dtype_bytes. */
size_t hvd_partial_bytes(enum hvd_dtype dtype);

/* Sets out[i] = op over sources, in ascending order of sources, for i < count; count >=
 * 0, sources >= 1. out may be one of the sources. Integers wrap on overflow. An integer
 * average is divided exactly; with a postscale it is computed in double. Both truncate
 * toward zero, and saturate if the result does not fit. Floats are multiplied by
 * postscale / divisor. In Min and Max NaN wins and -0 is below +0, whatever the order of
 * the sources. A computed NaN is the quiet NaN without sign and payload. The bits do not
 * depend on the CPU. Arrays must be aligned for their elements. */
void hvd_reduce(const struct hvd_reduction *reduction, const void *const *sources,
                int source_count, size_t count, void *out);

/* Reduces like hvd_reduce, for a large out that is not read soon: stores bypass the
 * caches, as in hvd_copy_stream. Advances each of the sources by count elements. */
void hvd_reduce_stream(const struct hvd_reduction *reduction, const void **sources,
                       int source_count, size_t count, void *out);

/* out[i] = factor * in[i] as dtype (integers: in double, truncated; float16, bfloat16 and
 * float32: in float; bool: unchanged); a plain copy when factor is 1. in may be out. */
void hvd_scale(enum hvd_dtype dtype, double factor, const void *in, void *out,
               size_t count);

/* out[i] = factor * in[i], multiplied in float and rounded once to dtype, float16 or
 * bfloat16: to nearest, ties to even. Values that are too large become infinite; NaN
 * stays NaN. */
void hvd_narrow(enum hvd_dtype dtype, double factor, const float *in, void *out,
                size_t count);

/* Converts float16 or bfloat16 to float, exactly. */
void hvd_widen(enum hvd_dtype dtype, const void *in, float *out, size_t count);

#endif
