/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction of many sources, block by block: what happens between two roundings happens in
 * the L1 cache. */
#include "collectives/reduce/reduce.h"

#include <string.h>

#include "collectives/reduce/reduce_kernels.h"

/* The same elements of all sources. */
struct block {
    const void *const *sources;
    int source_count;
    size_t source_bytes; /* of one element */
    size_t first;
    size_t count; /* at most HVD_BLOCK_ELEMENTS */
};

size_t hvd_partial_bytes(enum hvd_dtype dtype)
{
    bool is_widened = hvd_kernels_of(dtype)->widen != NULL;

    return is_widened ? sizeof(float) : hvd_dtype_bytes(dtype);
}

static const void *source_at(const struct block *block, int source)
{
    return (const char *)block->sources[source] + block->first * block->source_bytes;
}

/* Sources and out hold what the kernel works on. Only the last step writes to out, because
 * out may be a source that is still to be read. */
static void fold(hvd_combine_kernel *combine, const struct block *block, void *out)
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

/* As fold, from 16-bit sources to float. */
static void fold_widened(const struct hvd_kernels *kernels, hvd_combine_kernel *combine,
                         const struct block *block, float *out)
{
    _Alignas(64) float next[HVD_BLOCK_ELEMENTS];

    kernels->widen(source_at(block, 0), out, block->count);
    for (int i = 1; i < block->source_count; i++) {
        kernels->widen(source_at(block, i), next, block->count);
        combine(out, out, next, block->count);
    }
}

/* Elements that are their own partials. */
static void reduce_plain(const struct hvd_reduction *reduction, const struct block *block,
                         void *out)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(reduction->dtype);
    bool is_scaled =
        !reduction->to_partial && reduction->postscale != 1.0 && kernels->scale != NULL;

    fold(kernels->combine[reduction->op], block, out);
    if (is_scaled) {
        kernels->scale(reduction->postscale, out, out, block->count);
    }
}

/* 16-bit floats, with float as their partials. */
static void reduce_widened(const struct hvd_reduction *reduction,
                           const struct block *block, void *out)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(reduction->dtype);
    hvd_combine_kernel *combine = kernels->combine[reduction->op];
    _Alignas(64) float scratch[HVD_BLOCK_ELEMENTS];
    float *partial = reduction->to_partial ? out : scratch;

    if (reduction->from_partial) {
        fold(combine, block, partial);
    } else {
        fold_widened(kernels, combine, block, partial);
    }
    if (reduction->to_partial) {
        return;
    }
    if (reduction->postscale != 1.0) {
        kernels->scale(reduction->postscale, partial, partial, block->count);
    }
    kernels->narrow(partial, out, block->count);
}

void hvd_reduce(const struct hvd_reduction *reduction, const void *const *sources,
                int source_count, size_t count, void *out)
{
    bool is_widened = hvd_kernels_of(reduction->dtype)->widen != NULL;
    size_t element_bytes = hvd_dtype_bytes(reduction->dtype);
    size_t partial_bytes = hvd_partial_bytes(reduction->dtype);
    size_t out_bytes = reduction->to_partial ? partial_bytes : element_bytes;
    struct block block = {
        .sources = sources,
        .source_count = source_count,
        .source_bytes = reduction->from_partial ? partial_bytes : element_bytes,
    };

    while (block.first < count) {
        size_t left = count - block.first;
        void *to = (char *)out + block.first * out_bytes;

        block.count = left < HVD_BLOCK_ELEMENTS ? left : HVD_BLOCK_ELEMENTS;
        if (is_widened) {
            reduce_widened(reduction, &block, to);
        } else {
            reduce_plain(reduction, &block, to);
        }
        block.first += block.count;
    }
}
