/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces many sources block by block, so that intermediate values stay in the L1 cache.
 * Two sources, the most common case, take a single pass where possible. */
#include "collectives/reduce/reduce.h"

#include <stdint.h>
#include <string.h>

#include "collectives/reduce/reduce_kernels.h"
#include "collectives/reduce/stream.h"

/* The same range of elements of all sources. */
struct block {
    const void *const *sources;
    int source_count;
    size_t source_bytes; /* bytes of one element */
    size_t first;
    size_t count; /* at most HVD_BLOCK_ELEMENTS */
};

static const void *source_at(const struct block *block, int source)
{
    return (const char *)block->sources[source] + block->first * block->source_bytes;
}

/* Reduces elements of the kernel's own type. Only the last step writes to out, because
 * out may be a source that has yet to be read. */
static void fold_sources(hvd_combine_kernel *combine, const struct block *block,
                         void *out)
{
    _Alignas(64) char scratch[HVD_BLOCK_ELEMENTS * sizeof(double)];
    const void *folded = source_at(block, 0);

    if (block->source_count == 1 && folded != out) {
        memcpy(out, folded, block->count * block->source_bytes);
    }
    for (int i = 1; i < block->source_count; i++) {
        void *to = i + 1 < block->source_count ? scratch : out;

        combine(to, folded, source_at(block, i), block->count);
        folded = to;
    }
}

/* Reduces 16-bit sources to float, like fold_sources. */
static void fold_widened(const struct hvd_kernels *kernels, enum hvd_op op,
                         const struct block *block, float *out)
{
    kernels->widen(source_at(block, 0), out, block->count);
    for (int i = 1; i < block->source_count; i++) {
        kernels->add_half[op](out, out, source_at(block, i), block->count);
    }
}

/* Reduces like fold_widened, after multiplying each element by the prescale. */
static void fold_products(const struct hvd_reduction *reduction,
                          const struct block *block, float *out)
{
    const struct hvd_kernels *kernels = reduction->kernels;
    _Alignas(64) float next[HVD_BLOCK_ELEMENTS];

    for (int i = 0; i < block->source_count; i++) {
        float *to = i == 0 ? out : next;

        kernels->widen_scaled(reduction->prescale, source_at(block, i), to, block->count);
        if (i > 0) {
            kernels->combine[reduction->op](out, out, next, block->count);
        }
    }
}

/* The operation to carry out on the elements. */
struct task {
    struct hvd_reduction reduction;
    bool is_scaled; /* the result must be scaled */
};

static void scale_values(const struct task *task, void *values, size_t count)
{
    const struct hvd_reduction *reduction = &task->reduction;

    if (reduction->divisor > 1) {
        reduction->kernels->average(reduction->postscale, reduction->divisor, values,
                                    values, count);
    } else {
        reduction->kernels->scale(reduction->postscale, values, values, count);
    }
}

/* Reduces types whose partial results have the same type. */
static void reduce_plain(const struct task *task, const struct block *block, void *out)
{
    fold_sources(task->reduction.kernels->combine[task->reduction.op], block, out);
    if (task->is_scaled) {
        scale_values(task, out, block->count);
    }
}

/* Reduces 16-bit floats, whose partial results are float. */
static void reduce_widened(const struct task *task, const struct block *block, void *out)
{
    const struct hvd_reduction *reduction = &task->reduction;
    const struct hvd_kernels *kernels = reduction->kernels;
    _Alignas(64) float scratch[HVD_BLOCK_ELEMENTS];
    float *partial = reduction->to_partial ? out : scratch;

    if (reduction->from_partial) {
        fold_sources(kernels->combine[reduction->op], block, partial);
    } else if (reduction->prescale != 1.0) {
        fold_products(reduction, block, partial);
    } else {
        fold_widened(kernels, reduction->op, block, partial);
    }
    if (reduction->to_partial) {
        return;
    }
    if (task->is_scaled) {
        scale_values(task, partial, block->count);
    }
    kernels->narrow(partial, out, block->count);
}

static bool is_sum(const struct hvd_reduction *reduction)
{
    return reduction->op == HVD_SUM || reduction->op == HVD_AVERAGE;
}

/* Reduces two sources in one pass, without intermediate values. Returns false if there is
 * no kernel for it. */
static bool reduce_pair(const struct task *task, const void *const *sources, size_t count,
                        void *out)
{
    const struct hvd_reduction *reduction = &task->reduction;
    const struct hvd_kernels *kernels = reduction->kernels;
    bool is_widened = kernels->widen != NULL;
    hvd_combine_kernel *combine =
        (is_widened ? kernels->halves : kernels->combine)[reduction->op];

    if (is_widened && (reduction->from_partial || reduction->to_partial ||
                       reduction->prescale != 1.0)) {
        return false;
    }
    if (!task->is_scaled) {
        combine(out, sources[0], sources[1], count);
        return true;
    }
    if (is_sum(reduction) && kernels->sum_scaled != NULL) {
        kernels->sum_scaled(reduction->postscale, sources[0], sources[1], out, count);
        return true;
    }
    return false;
}

/* Reduces sums of more sources, or with a prescale, in one pass. Returns false if there
 * is no kernel for it. */
static bool reduce_sum(const struct task *task, const struct block *block, size_t count,
                       void *out)
{
    const struct hvd_reduction *reduction = &task->reduction;
    const struct hvd_kernels *kernels = reduction->kernels;
    bool is_partial = reduction->from_partial || reduction->to_partial;
    const struct hvd_sum_factors factors = {
        .before = kernels->widen != NULL ? reduction->prescale : 1.0,
        .after = reduction->to_partial ? 1.0 : reduction->postscale,
    };

    if (kernels->sum_all == NULL || !is_sum(reduction) ||
        (kernels->widen != NULL && is_partial)) {
        return false;
    }
    kernels->sum_all(factors, block->sources, block->source_count, count, out);
    return true;
}

static void reduce_blocks(const struct task *task, struct block *block, size_t count,
                          void *out)
{
    size_t out_bytes = task->reduction.to_partial
                           ? hvd_partial_bytes(task->reduction.dtype)
                           : task->reduction.element_bytes;

    while (block->first < count) {
        size_t left = count - block->first;
        void *to = (char *)out + block->first * out_bytes;

        block->count = left < HVD_BLOCK_ELEMENTS ? left : HVD_BLOCK_ELEMENTS;
        if (task->reduction.kernels->widen != NULL) {
            reduce_widened(task, block, to);
        } else {
            reduce_plain(task, block, to);
        }
        block->first += block->count;
    }
}

struct hvd_reduction hvd_reduction_of(enum hvd_dtype dtype, enum hvd_op op)
{
    return (struct hvd_reduction){.kernels = hvd_kernels_of(dtype),
                                  .dtype = dtype,
                                  .element_bytes = hvd_dtype_bytes(dtype),
                                  .op = op,
                                  .prescale = 1.0,
                                  .postscale = 1.0};
}

static bool is_scaled(const struct hvd_reduction *reduction)
{
    return !reduction->to_partial && reduction->kernels->scale != NULL &&
           (reduction->postscale != 1.0 || reduction->divisor > 1);
}

/* Whether the result equals the only source bit for bit, so that nothing is left to do in
 * place. */
static bool is_copy(const struct hvd_reduction *reduction, int source_count)
{
    bool keeps_type = reduction->kernels->widen == NULL ||
                      (reduction->from_partial == reduction->to_partial &&
                       (reduction->from_partial || reduction->prescale == 1.0));

    return source_count == 1 && keeps_type && !is_scaled(reduction);
}

/* Reduces blocks of all sources. For floats the divisor is folded into the factor, which
 * is rounded to their type anyway. */
void hvd_reduce(const struct hvd_reduction *reduction, const void *const *sources,
                int source_count, size_t count, void *out)
{
    const struct hvd_kernels *kernels = reduction->kernels;
    struct task task = {.reduction = *reduction};
    struct block block = {
        .sources = sources,
        .source_count = source_count,
        .source_bytes = reduction->from_partial ? hvd_partial_bytes(reduction->dtype)
                                                : reduction->element_bytes,
    };

    if (reduction->divisor > 1 && kernels->average == NULL) {
        task.reduction.postscale /= reduction->divisor;
        task.reduction.divisor = 1;
    }
    task.is_scaled = is_scaled(&task.reduction);
    if (is_copy(&task.reduction, source_count)) {
        if (sources[0] != out) {
            memcpy(out, sources[0], count * block.source_bytes);
        }
        return;
    }
    if (source_count == 2 && reduce_pair(&task, sources, count, out)) {
        return;
    }
    if (source_count < 2 || !reduce_sum(&task, &block, count, out)) {
        reduce_blocks(&task, &block, count, out);
    }
}

/* --- streaming: reduces into a block in the L1 cache, then copies it past the caches
 * --- */

enum {
    LINE = 64,
    BLOCK_BYTES = 8192,
};

/* The first block is cut so that it ends at a cache line of out; so all other blocks end
 * at one, too. */
void hvd_reduce_stream(const struct hvd_reduction *reduction, const void **sources,
                       int source_count, size_t count, void *out)
{
    size_t partial = hvd_partial_bytes(reduction->dtype);
    size_t element = reduction->element_bytes;
    size_t in_bytes = reduction->from_partial ? partial : element;
    size_t out_bytes = reduction->to_partial ? partial : element;
    _Alignas(LINE) char block[BLOCK_BYTES];
    char *to = out;

    if (is_copy(reduction, source_count)) {
        if (sources[0] != out) {
            hvd_copy_stream(out, sources[0], count * out_bytes);
        }
        sources[0] = (const char *)sources[0] + count * in_bytes;
        return;
    }
    while (count > 0) {
        size_t most = (BLOCK_BYTES - (uintptr_t)to % LINE) / out_bytes;
        size_t part = count < most ? count : most;

        hvd_reduce(reduction, sources, source_count, part, block);
        hvd_copy_stream(to, block, part * out_bytes);
        for (int i = 0; i < source_count; i++) {
            sources[i] = (const char *)sources[i] + part * in_bytes;
        }
        to += part * out_bytes;
        count -= part;
    }
}

/* --- factors and types --- */

void hvd_scale(enum hvd_dtype dtype, double factor, const void *in, void *out,
               size_t count)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(dtype);

    if (factor == 1.0 || kernels->scale == NULL) {
        if (in != out) {
            memcpy(out, in, count * hvd_dtype_bytes(dtype));
        }
    } else if (kernels->widen != NULL) {
        kernels->scale_half(factor, in, out, count);
    } else {
        kernels->scale(factor, in, out, count);
    }
}

void hvd_narrow(enum hvd_dtype dtype, double factor, const float *in, void *out,
                size_t count)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(dtype);
    _Alignas(64) float scaled[HVD_BLOCK_ELEMENTS];
    char *to = out;

    if (factor == 1.0) {
        kernels->narrow(in, out, count);
        return;
    }
    while (count > 0) {
        size_t block = count < HVD_BLOCK_ELEMENTS ? count : HVD_BLOCK_ELEMENTS;

        kernels->scale(factor, in, scaled, block);
        kernels->narrow(scaled, to, block);
        in += block;
        to += block * hvd_dtype_bytes(dtype);
        count -= block;
    }
}

void hvd_widen(enum hvd_dtype dtype, const void *in, float *out, size_t count)
{
    hvd_kernels_of(dtype)->widen(in, out, count);
}
