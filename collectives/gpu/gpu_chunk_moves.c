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
struct common {
    const struct hvd_gpu_pipeline_config *config;
    struct hvd_entry *entry;
    int64_t in_entry; /* offset in the tensor */
    int64_t in_chunk;
    int64_t bytes;
};

/* Calls `see` for each tensor that has bytes in the chunk, in order. */
static void walk_chunk(const struct hvd_gpu_pipeline_config *config,
                       const struct hvd_gpu_chunk *chunk,
                       void (*see)(const struct common *common, char *memory,
                                   struct hvd_gpu_steps *steps),
                       struct hvd_gpu_steps *steps)
{
    const struct hvd_batch *batch = config->batch;
    int64_t size = (int64_t)hvd_dtype_bytes(config->descriptor.dtype);
    int64_t entry_size = (int64_t)hvd_dtype_bytes(batch->entries[0]->descriptor.dtype);
    int64_t at = 0, end = chunk->begin + chunk->bytes;

    for (int64_t i = 0; i < batch->header.count && at < end; i++) {
        int64_t next = at + hvd_entry_count(batch->entries[i]) * size;
        int64_t from = at > chunk->begin ? at : chunk->begin;
        int64_t to = next < end ? next : end;
        struct common common = {.config = config,
                                .entry = batch->entries[i],
                                .in_entry = (from - at) / size * entry_size,
                                .in_chunk = from - chunk->begin,
                                .bytes = to - from};

        if (common.bytes > 0) {
            see(&common, chunk->memory, steps);
        }
        at = next;
    }
}

/* From this size on, a piece that goes to or from host memory is copied by the GPU's copy
 * engine, which leaves the multiprocessors to the training. Smaller ones are moved by one
 * kernel together: starting a copy takes longer than the bytes. Not measured on real
 * GPUs. */
static const int64_t copied_bytes = 64 << 10;

/* Whether the bytes stay as they are. */
static bool is_plain(const struct hvd_gpu_step *move)
{
    return move->factor == 1.0 && move->divisor <= 1 &&
           hvd_dtype_bytes(move->dtype) == hvd_dtype_bytes(move->to_dtype);
}

/* Whether this piece is copied by itself, not by a kernel together with others. */
static bool is_copied(const struct common *common, const struct hvd_gpu_step *move)
{
    const struct hvd_gpu_pipeline_config *config = common->config;
    const struct hvd_gpu_pool *pool = config->gpu->pool;

    return is_plain(move) && (pool->module->no_kernels(pool->device) != NULL ||
                              (config->comm == NULL && common->bytes >= copied_bytes));
}

static void add_copied(const struct common *common, struct hvd_gpu_step move,
                       struct hvd_gpu_steps *steps)
{
    if (is_copied(common, &move)) {
        hvd_gpu_steps_add_copy(steps, move.from, move.to, common->bytes);
    }
}

static void add_moved(const struct common *common, struct hvd_gpu_step move,
                      struct hvd_gpu_steps *steps)
{
    if (is_copied(common, &move)) {
        return;
    }
    move.kind = HVD_GPU_MOVE;
    if (is_plain(&move)) {
        move.dtype = move.to_dtype = HVD_UINT8;
        move.count = common->bytes;
    } else {
        move.count =
            common->bytes / (int64_t)hvd_dtype_bytes(common->config->descriptor.dtype);
    }
    hvd_gpu_steps_add(steps, &move);
}

static struct hvd_gpu_step make_move_in(const struct common *common, char *memory)
{
    const struct hvd_entry *entry = common->entry;

    return (struct hvd_gpu_step){.from = (const char *)entry->input + common->in_entry,
                                 .to = memory + common->in_chunk,
                                 .dtype = entry->descriptor.dtype,
                                 .to_dtype = common->config->descriptor.dtype,
                                 .factor = common->config->before};
}

static void copy_in(const struct common *common, char *memory,
                    struct hvd_gpu_steps *steps)
{
    if (!common->entry->is_zeros) {
        add_copied(common, make_move_in(common, memory), steps);
    }
}

static void move_in(const struct common *common, char *memory,
                    struct hvd_gpu_steps *steps)
{
    if (!common->entry->is_zeros) {
        add_moved(common, make_move_in(common, memory), steps);
    }
}

static struct hvd_gpu_step make_move_out(const struct common *common, char *memory)
{
    const struct hvd_entry *entry = common->entry;

    return (struct hvd_gpu_step){.from = memory + common->in_chunk,
                                 .to = (char *)entry->output + common->in_entry,
                                 .dtype = common->config->descriptor.dtype,
                                 .to_dtype = entry->descriptor.dtype,
                                 .factor = common->config->after,
                                 .divisor = common->config->divisor};
}

static void copy_out(const struct common *common, char *memory,
                     struct hvd_gpu_steps *steps)
{
    if (!common->entry->is_zeros) {
        add_copied(common, make_move_out(common, memory), steps);
    }
}

static void move_out(const struct common *common, char *memory,
                     struct hvd_gpu_steps *steps)
{
    if (!common->entry->is_zeros) {
        add_moved(common, make_move_out(common, memory), steps);
    }
}

void hvd_gpu_chunk_move_in(const struct hvd_gpu_pipeline_config *config,
                           const struct hvd_gpu_chunk *chunk, struct hvd_gpu_steps *steps)
{
    walk_chunk(config, chunk, copy_in, steps);
    walk_chunk(config, chunk, move_in, steps);
}

void hvd_gpu_chunk_move_out(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk,
                            struct hvd_gpu_steps *steps)
{
    walk_chunk(config, chunk, copy_out, steps);
    walk_chunk(config, chunk, move_out, steps);
}

static void zero_on_device(const struct common *common, char *memory,
                           struct hvd_gpu_steps *steps)
{
    if (common->entry->is_zeros) {
        hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = HVD_GPU_ZERO,
                                                        .to = memory + common->in_chunk,
                                                        .count = common->bytes});
    }
}

static void zero_on_host(const struct common *common, char *memory,
                         struct hvd_gpu_steps *steps)
{
    (void)steps;
    if (common->entry->is_zeros) {
        memset(memory + common->in_chunk, 0, (size_t)common->bytes);
    }
}

void hvd_gpu_chunk_zero(const struct hvd_gpu_pipeline_config *config,
                        const struct hvd_gpu_chunk *chunk, struct hvd_gpu_steps *steps)
{
    walk_chunk(config, chunk, zero_on_device, steps);
}

void hvd_gpu_chunk_zero_now(const struct hvd_gpu_pipeline_config *config,
                            const struct hvd_gpu_chunk *chunk)
{
    walk_chunk(config, chunk, zero_on_host, NULL);
}
