/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction past the caches: into a block that stays in the L1 cache, and from there on. */
#include <stdint.h>

#include "collectives/reduce/reduce.h"
#include "collectives/reduce/stream.h"

enum {
    LINE = 64,
    BLOCK_BYTES = 8192,
};

/* The first block ends where a cache line of out does, and so do all that follow. */
void hvd_reduce_stream(const struct hvd_reduction *reduction, const void **sources,
                       int source_count, size_t count, void *out)
{
    size_t partial = hvd_partial_bytes(reduction->dtype);
    size_t element = hvd_dtype_bytes(reduction->dtype);
    size_t in_bytes = reduction->from_partial ? partial : element;
    size_t out_bytes = reduction->to_partial ? partial : element;
    _Alignas(LINE) char block[BLOCK_BYTES];
    char *to = out;

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
