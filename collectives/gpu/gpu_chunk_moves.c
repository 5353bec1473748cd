/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move the tensors of a batch into a chunk of a pipeline, and back. */
#include "collectives/gpu/gpu_chunk_moves.h"

#include <string.h>

#include "collectives/gpu/gpu_pipeline.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/gpu/gpu_steps.h"
#include "collectives/request/batch.h"

int64_t hvd_gpu_batch_bytes(const struct hvd_batch *batch, enum hvd_dtype dtype)
{
    int64_t count = 0;

    for (int64_t i = 0; i < batch->header.count; i++) {
        count += hvd_entry_count(batch->entries[i]);
    }
    return count * (int64_t)hvd_dtype_bytes(dtype);
}

/* The bytes that are both in a chunk and in a tensor. */
struct piece {
    const struct hvd_entry *entry;
    int64_t in_entry; /* offset in the tensor */
    char *memory; /* in the chunk */
    int64_t bytes; /* in the chunk */
};

/* A walk over the pieces of a chunk, in order. */
struct piece_walk {
    bool is_zeros; /* over tensors that a joined rank lacks; else over the others */
    int64_t number; /* of the next tensor */
    int64_t at; /* where that tensor begins in the sequence */
};

/* Returns false at the end. */
static bool next_piece(const struct hvd_gpu_pipeline_config *config,
                       const struct hvd_gpu_chunk *chunk, struct piece_walk *walk,
                       struct piece *piece)
{
    const struct hvd_batch *batch = config->batch;
    int64_t size = (int64_t)hvd_dtype_bytes(config->reduction.dtype);
    int64_t entry_size = (int64_t)hvd_dtype_bytes(batch->entries[0]->descriptor.dtype);
    int64_t end = chunk->begin + chunk->bytes;

    while (walk->number < batch->header.count && walk->at < end) {
        const struct hvd_entry *entry = batch->entries[walk->number++];
        int64_t at = walk->at, next = at + hvd_entry_count(entry) * size;
        int64_t from = at > chunk->begin ? at : chunk->begin;
        int64_t to = next < end ? next : end;

        walk->at = next;
        if (to > from && entry->is_zeros == walk->is_zeros) {
            *piece = (struct piece){.entry = entry,
                                    .in_entry = (from - at) / size * entry_size,
                                    .memory = chunk->memory + (from - chunk->begin),
                                    .bytes = to - from};
            return true;
        }
    }
    return false;
}

/* --- moves --- */

/* Makes the move of a piece in one direction, without the count. */
typedef struct hvd_gpu_step make_move(const struct hvd_gpu_reduction *reduction,
                                      const struct piece *piece);

static struct hvd_gpu_step make_move_in(const struct hvd_gpu_reduction *reduction,
                                        const struct piece *piece)
{
    struct hvd_gpu_step move =
        hvd_gpu_reduction_move_in(reduction, piece->entry->descriptor.dtype);

    move.from = (const char *)piece->entry->input + piece->in_entry;
    move.to = piece->memory;
    return move;
}

static struct hvd_gpu_step make_move_out(const struct hvd_gpu_reduction *reduction,
                                         const struct piece *piece)
{
    struct hvd_gpu_step move =
        hvd_gpu_reduction_move_out(reduction, piece->entry->descriptor.dtype);

    move.from = piece->memory;
    move.to = (char *)piece->entry->output + piece->in_entry;
    return move;
}

/* From this size on, a piece that goes to or from host memory is copied by the GPU's copy
 * engine, which leaves the multiprocessors to the training. Smaller ones are moved by one
 * kernel together: starting a copy takes longer than the bytes. Not measured on real
 * GPUs. */
static const int64_t copied_bytes = 64 << 10;

/* Whether this piece is copied by itself, not by a kernel together with others. */
static bool is_copied(const struct hvd_gpu_pipeline_config *config,
                      const struct piece *piece, const struct hvd_gpu_step *move)
{
    const struct hvd_gpu_pool *pool = config->gpu->pool;

    return hvd_gpu_step_is_plain(move) &&
           (pool->module->no_kernels(pool->device) != NULL ||
            (config->comm == NULL && piece->bytes >= copied_bytes));
}

static void add_move(const struct hvd_gpu_pipeline_config *config,
                     const struct piece *piece, struct hvd_gpu_step move,
                     struct hvd_gpu_steps *steps)
{
    if (hvd_gpu_step_is_plain(&move)) {
        move.dtype = move.to_dtype = HVD_UINT8;
        move.count = piece->bytes;
    } else {
        move.count = piece->bytes / (int64_t)hvd_dtype_bytes(config->reduction.dtype);
    }
    hvd_gpu_steps_add(steps, &move);
}

/* Adds first the copies, then the moves, which are launched together because nothing is
 * in between. */
static void add_moves(const struct hvd_gpu_pipeline_config *config,
                      const struct hvd_gpu_chunk *chunk, make_move *make,
                      struct hvd_gpu_steps *steps)
{
    struct piece piece;

    for (struct piece_walk walk = {0}; next_piece(config, chunk, &walk, &piece);) {
        const struct hvd_gpu_step move = make(&config->reduction, &piece);

        if (is_copied(config, &piece, &move)) {
            hvd_gpu_steps_add_copy(steps, move.from, move.to, piece.bytes);
        }
    }
    for (struct piece_walk walk = {0}; next_piece(config, chunk, &walk, &piece);) {
        const struct hvd_gpu_step move = make(&config->reduction, &piece);

        if (!is_copied(config, &piece, &move)) {
            add_move(config, &piece, move, steps);
        }
    }
}

void hvd_gpu_chunk_move_in(const struct hvd_gpu_pipeline_config *config,
                           const struct hvd_gpu_chunk *chunk, struct hvd_gpu_steps *steps)
{
    add_moves(config, chunk, make_move_in, steps);
}

void hvd_gpu_chunk_move_out(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk,
                            struct hvd_gpu_steps *steps)
{
    add_moves(config, chunk, make_move_out, steps);
}

/* --- zeros --- */

void hvd_gpu_chunk_zero(const struct hvd_gpu_pipeline_config *config,
                        const struct hvd_gpu_chunk *chunk, struct hvd_gpu_steps *steps)
{
    struct piece piece;

    for (struct piece_walk walk = {.is_zeros = true};
         next_piece(config, chunk, &walk, &piece);) {
        hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = HVD_GPU_ZERO,
                                                        .to = piece.memory,
                                                        .count = piece.bytes});
    }
}

void hvd_gpu_chunk_zero_now(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk)
{
    struct piece piece;

    for (struct piece_walk walk = {.is_zeros = true};
         next_piece(config, chunk, &walk, &piece);) {
        memset(piece.memory, 0, (size_t)piece.bytes);
    }
}
