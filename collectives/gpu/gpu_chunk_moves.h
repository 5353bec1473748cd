/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move the tensors of a batch into a chunk of a pipeline, and back. The
 * tensors' bytes, in the type of the reduction, count as one sequence; a chunk has a part
 * of it, which may begin and end within a tensor:
 *
 *   tensors   aaaaaaaa bbb ccccccccc      (b: a joined rank lacks it)
 *   chunks    aaaaa|aaabb|bcccc|ccccc
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_CHUNK_MOVES_H
#define HVD_GPU_CHUNK_MOVES_H

#include <stdint.h>

#include "collectives/hvd.h"

struct hvd_batch;
struct hvd_gpu_pipeline_config;
struct hvd_gpu_steps;

struct hvd_gpu_chunk {
    int64_t begin; /* offset in the sequence */
    int64_t bytes;
    char *memory; /* on the device; in pinned host memory if the pipeline has no comm */
};

/* Returns the bytes of all tensors in dtype, including those that a joined rank lacks.
 * The result is the same on all ranks. */
int64_t hvd_gpu_batch_bytes(const struct hvd_batch *batch, enum hvd_dtype dtype);

/* Append steps that move the tensors' bytes into the chunk, or the chunk's bytes back to
 * the tensors: first the pieces that are copied one by one, then those that a kernel
 * moves together. Tensors that a joined rank lacks are left out. See steps->failed. */
void hvd_gpu_chunk_move_in(const struct hvd_gpu_pipeline_config *config,
                           const struct hvd_gpu_chunk *chunk,
                           struct hvd_gpu_steps *steps);
void hvd_gpu_chunk_move_out(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk,
                            struct hvd_gpu_steps *steps);

/* A joined rank contributes zeros for the tensors that it lacks: zero appends steps that
 * write them to a chunk on the device, zero_now writes them to one in host memory. */
void hvd_gpu_chunk_zero(const struct hvd_gpu_pipeline_config *config,
                        const struct hvd_gpu_chunk *chunk, struct hvd_gpu_steps *steps);
void hvd_gpu_chunk_zero_now(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk);

#endif
