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

/* Made by hvd_reduction_of. */
struct hvd_reduction {
    const struct hvd_kernels *kernels; /* of dtype, on this CPU */
    enum hvd_dtype dtype;
    size_t element_bytes; /* of dtype */
    enum hvd_op op; /* not ADASUM; AVERAGE is SUM, and the caller's divisor */
    double prescale; /* of 16-bit floats: applied to elements as they become float */
    /* Applied when the result is written as dtype, not as partial: postscale * result / divisor. */
    double postscale;
    bool from_partial; /* sources hold partials, else dtype */
    bool to_partial; /* out receives partials, else dtype */
    uint32_t divisor; /* 0 and 1: none */
};

/* The op on elements of a type, with no factor and no divisor: the caller sets the others. */
struct hvd_reduction hvd_reduction_of(enum hvd_dtype dtype, enum hvd_op op);

/* Bytes of one partial: 4 for float16 and bfloat16, else hvd_dtype_bytes. */
size_t hvd_partial_bytes(enum hvd_dtype dtype);

/* out[i] = op over sources in ascending order of index, i < count, count >= 0, sources >= 1. out
 * may be one of the sources. Integers wrap, and are divided exactly; with a postscale that is done
 * in double. Both truncate toward zero, and saturate where the result would not fit. Floats are
 * multiplied by postscale / divisor. In Min and Max NaN wins and -0 is below +0, whatever the
 * order of the sources. A NaN that is computed is the quiet one without sign and payload. The bits
 * do not depend on the CPU. Arrays are aligned for their elements. */
void hvd_reduce(const struct hvd_reduction *reduction, const void *const *sources,
                int source_count, size_t count, void *out);

/* As hvd_reduce, for an out of many pages that nobody reads soon: past the caches, as
 * hvd_copy_stream. Moves each of sources on by count elements. */
void hvd_reduce_stream(const struct hvd_reduction *reduction, const void **sources,
                       int source_count, size_t count, void *out);

/* out[i] = factor * in[i] as dtype (integers: in double, truncated; float16, bfloat16 and
 * float32: in float; bool: unchanged); a plain copy when factor is 1. in may be out. */
void hvd_scale(enum hvd_dtype dtype, double factor, const void *in, void *out,
               size_t count);

/* out[i] = factor * in[i], multiplied in float and rounded once to dtype, float16 or bfloat16: to
 * nearest, ties to even; what is too large becomes infinite, NaN stays NaN. */
void hvd_narrow(enum hvd_dtype dtype, double factor, const float *in, void *out,
                size_t count);

/* The float that a float16 or bfloat16 is. */
void hvd_widen(enum hvd_dtype dtype, const void *in, float *out, size_t count);

#endif
