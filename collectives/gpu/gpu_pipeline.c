/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce of GPU tensors in chunks, several of which are in progress. */
#include "collectives/gpu/gpu_pipeline.h"

#include <stdlib.h>

#include "collectives/gpu/gpu_chunk_moves.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_trace.h"
#include "collectives/run/run.h"
#include "collectives/gpu/gpu_direct.h"
#include "collectives/trace/timeline_words.h"
#include "gpu_binding/base/error.h"

/* The jobs of one chunk. */
struct chunk_jobs {
    /* its reduce, and the gather of the chunk that is HVD_GPU_WINDOW before it; see
     * reduce_job */
    struct hvd_gpu_job reduce;
    struct hvd_gpu_job fetch;
    struct hvd_gpu_job back;
    struct hvd_gpu_job gather; /* if no reduce is launched together with it */
};

/* Chunks that have memory on the device, and jobs. While one chunk is gathered and
 * another one is reduced, the chunk before the first is still unpacked. */
enum {
    PLACES = HVD_GPU_WINDOW + 2,
};

struct hvd_gpu_pipeline {
    struct hvd_gpu_pipeline_config config;
    int64_t bytes; /* of all tensors, in the type of the reduction */
    int64_t chunk_bytes; /* bytes of a chunk; the last one may be smaller */
    int64_t shard_bytes; /* bytes of a shard of a full chunk */
    int64_t count; /* number of chunks, at least 1 */
    int64_t begun; /* chunks whose reduce and fetch have been submitted */
    int64_t added; /* chunks that have been summed */
    /* [PLACES][local_size] shards; NULL without comm */
    struct hvd_gpu_buffer *device;
    struct hvd_gpu_buffer *host; /* [HVD_GPU_WINDOW] shards; NULL if direct */
    struct chunk_jobs jobs[PLACES];
    /* Set if direct: */
    struct hvd_gpu_direct_allreduce *directs[HVD_GPU_WINDOW];
    /* [HVD_GPU_WINDOW] pieces of scratch_bytes, on the device */
    struct hvd_gpu_buffer *scratch;
    int64_t scratch_bytes;
    struct hvd_entry entry; /* the entry of `run` */
    struct hvd_run *run; /* sums chunk number `added` */
};

/* A chunk, which the ranks of the node cut into shards of shard_bytes. */
struct chunk {
    int64_t number;
    struct hvd_gpu_chunk whole; /* the shards of all ranks of the node */
    int64_t shard_bytes; /* the last shards may extend beyond the chunk */
    int64_t own_bytes; /* bytes of this rank's shard that lie within the chunk */
    char *shard; /* this rank's shard, on the device; NULL without comm */
    char *host; /* this rank's shard, in host memory; NULL if direct */
    struct chunk_jobs *jobs;
    struct hvd_gpu_direct_allreduce *direct; /* NULL if the chunk goes through the host */
    char *scratch; /* for `direct` */
};

/* Alignment of a shard: NCCL is faster with aligned addresses. */
enum {
    SHARD_ALIGNMENT = 256
};

/* Number of the team's slots per shard. At most 8 (2 MiB): the network and the bus to the
 * device need about 100 us each for 2 MiB, so the cost of starting a chunk is small. A
 * batch that does not fill the window with such chunks gets smaller ones, so that they
 * overlap, but not below 4 (1 MiB): starting one costs the launcher about as long as the
 * network needs for that. Not measured on real GPUs. */
static const size_t most_slots = 8;
static const size_t least_slots = 4;

static int64_t round_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static int64_t least_of(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t hvd_gpu_pipeline_shard_bytes(const struct hvd_team *team)
{
    return (int64_t)(most_slots * team->geometry.slot_bytes);
}

/* Returns the size of a shard, for a batch with `each` bytes per rank of the node. */
static int64_t choose_shard_bytes(const struct hvd_team *team, int64_t each)
{
    int64_t most = hvd_gpu_pipeline_shard_bytes(team);
    int64_t least = (int64_t)(least_slots * team->geometry.slot_bytes);
    int64_t bytes =
        round_up((each + HVD_GPU_WINDOW - 1) / HVD_GPU_WINDOW, SHARD_ALIGNMENT);

    bytes = bytes < least ? least : bytes;
    bytes = bytes > most ? most : bytes;
    each = round_up(each > 0 ? each : 1, SHARD_ALIGNMENT);
    return bytes > each ? each : bytes;
}

static int open_directs(struct hvd_gpu_pipeline *pipeline, int64_t places,
                        struct hvd_error *err)
{
    const struct hvd_gpu_pipeline_config *config = &pipeline->config;
    int status;

    pipeline->scratch_bytes =
        hvd_gpu_direct_scratch_bytes(config->team, pipeline->shard_bytes);
    status = hvd_gpu_buffer_take(config->gpu->pool, HVD_GPU_DEVICE_MEMORY,
                                 (size_t)(places * pipeline->scratch_bytes),
                                 &pipeline->scratch, err);
    for (int i = 0; status == 0 && i < places; i++) {
        status = hvd_gpu_direct_create(config->gpu, config->team, i,
                                       &pipeline->directs[i], err);
    }
    return status;
}

static int take_buffers(struct hvd_gpu_pipeline *pipeline, struct hvd_error *err)
{
    const struct hvd_gpu_pipeline_config *config = &pipeline->config;
    int64_t places = least_of(pipeline->count, HVD_GPU_WINDOW);
    size_t bytes = (size_t)(places * pipeline->shard_bytes);
    int status = config->is_direct
                     ? open_directs(pipeline, places, err)
                     : hvd_gpu_buffer_take(config->gpu->pool, HVD_GPU_HOST_MEMORY, bytes,
                                           &pipeline->host, err);

    if (status != 0 || config->comm == NULL) {
        return status;
    }
    bytes = (size_t)(least_of(pipeline->count, PLACES) * config->local_size *
                     pipeline->shard_bytes);
    /* Direct chunks must be in device memory: UCX is told that they are. */
    return config->is_direct
               ? hvd_gpu_buffer_take(config->gpu->pool, HVD_GPU_DEVICE_MEMORY, bytes,
                                     &pipeline->device, err)
               : hvd_gpu_buffer_take_near(config->gpu->pool, bytes, &pipeline->device,
                                          err);
}

int hvd_gpu_pipeline_create(const struct hvd_gpu_pipeline_config *config,
                            struct hvd_gpu_pipeline **out, struct hvd_error *err)
{
    struct hvd_gpu_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    int status;

    if (pipeline == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a batch");
    }
    pipeline->config = *config;
    pipeline->bytes = hvd_gpu_batch_bytes(config->batch, config->descriptor.dtype);
    pipeline->shard_bytes = choose_shard_bytes(
        config->team, (pipeline->bytes + config->local_size - 1) / config->local_size);
    pipeline->chunk_bytes = pipeline->shard_bytes * config->local_size;
    pipeline->count =
        (pipeline->bytes + pipeline->chunk_bytes - 1) / pipeline->chunk_bytes;
    pipeline->count = pipeline->count > 0 ? pipeline->count : 1;
    status = take_buffers(pipeline, err);
    if (status != 0) {
        hvd_gpu_pipeline_destroy(pipeline);
        return status;
    }
    *out = pipeline;
    return 0;
}

/* --- a chunk and its jobs --- */

static struct chunk chunk_of(struct hvd_gpu_pipeline *pipeline, int64_t number)
{
    const struct hvd_gpu_pipeline_config *config = &pipeline->config;
    int64_t at = number % HVD_GPU_WINDOW, place = number % PLACES;
    struct chunk chunk = {.number = number, .jobs = &pipeline->jobs[place]};
    int64_t left = pipeline->bytes - number * pipeline->chunk_bytes;

    chunk.whole.begin = number * pipeline->chunk_bytes;
    chunk.whole.bytes = least_of(left, pipeline->chunk_bytes);
    if (config->is_direct) {
        chunk.direct = pipeline->directs[at];
        chunk.scratch = pipeline->scratch->memory + at * pipeline->scratch_bytes;
    } else {
        chunk.host = pipeline->host->memory + at * pipeline->shard_bytes;
    }
    if (config->comm == NULL) {
        chunk.whole.memory = chunk.host;
        chunk.shard_bytes = chunk.whole.bytes;
    } else {
        chunk.shard_bytes =
            round_up((chunk.whole.bytes + config->local_size - 1) / config->local_size,
                     SHARD_ALIGNMENT);
        chunk.whole.memory = pipeline->device->memory + place * pipeline->chunk_bytes;
        chunk.shard = chunk.whole.memory + config->local_rank * chunk.shard_bytes;
    }
    left = chunk.whole.bytes - config->local_rank * chunk.shard_bytes;
    chunk.own_bytes = left < 0 ? 0 : left < chunk.shard_bytes ? left : chunk.shard_bytes;
    return chunk;
}

static void add_follow(struct hvd_gpu_steps *steps, const struct hvd_gpu_job *job)
{
    hvd_gpu_steps_add(
        steps, &(struct hvd_gpu_step){.kind = HVD_GPU_FOLLOW, .event = job->mark->event});
}

/* Makes the job of the first chunk wait for the input on the caller's streams. Later
 * chunks come after it on the same queue. */
static void follow_input(const struct hvd_gpu_pipeline *pipeline, struct hvd_gpu_job *job)
{
    const struct hvd_batch *batch = pipeline->config.batch;

    if (pipeline->begun == 0) {
        hvd_gpu_steps_follow(&job->steps, batch->entries, (int)batch->header.count);
    }
}

/* Submits a job. The timeline shows the first chunk going to the host and the last one
 * coming back; the time in between is the work of the hosts. */
static int submit_job(struct hvd_gpu_pipeline *pipeline, struct hvd_gpu_job *job,
                      enum hvd_gpu_queue queue, bool is_shown, struct hvd_error *err)
{
    const struct hvd_gpu_pipeline_config *config = &pipeline->config;
    bool collects = queue == HVD_GPU_COLLECT;

    if (is_shown) {
        hvd_gpu_trace_work(config->trace, config->gpu, HVD_KIND_ALLREDUCE, queue,
                           &job->work);
    }
    return hvd_gpu_job_submit(config->gpu, job, queue, collects ? config->comm : NULL,
                              err);
}

static bool is_last(const struct hvd_gpu_pipeline *pipeline)
{
    return pipeline->added == pipeline->count - 1;
}

/* --- reduce and gather, on the COLLECT queue --- */

/* One launch of NCCL. */
struct turn {
    int64_t gathered; /* number of the chunk that is gathered; -1: none */
    int64_t reduced; /* number of the first chunk that is reduced */
    int count; /* number of chunks that are reduced */
};

/* Returns the job that reduces the chunk. The last two chunks of the first window have
 * one job: their shards are not fetched before those of the first two chunks, which takes
 * longer than the reduction. */
static struct hvd_gpu_job *reduce_job(struct hvd_gpu_pipeline *pipeline, int64_t number)
{
    int64_t first = number == HVD_GPU_WINDOW - 1 ? number - 1 : number;

    return &pipeline->jobs[first % PLACES].reduce;
}

/* Returns how many chunks are reduced together with this one, which is in the first
 * window. */
static int reduced_together(const struct hvd_gpu_pipeline *pipeline, int64_t number)
{
    return number == HVD_GPU_WINDOW - 2 && number + 1 < pipeline->count ? 2 : 1;
}

static void pack_turn(struct hvd_gpu_pipeline *pipeline, const struct turn *turn,
                      struct hvd_gpu_steps *steps)
{
    for (int i = 0; i < turn->count; i++) {
        const struct chunk chunk = chunk_of(pipeline, turn->reduced + i);

        hvd_gpu_chunk_move_in(&pipeline->config, &chunk.whole, steps);
    }
    for (int i = 0; i < turn->count; i++) {
        const struct chunk chunk = chunk_of(pipeline, turn->reduced + i);

        hvd_gpu_chunk_zero(&pipeline->config, &chunk.whole, steps);
    }
}

static void unpack_chunk(struct hvd_gpu_pipeline *pipeline, int64_t number,
                         struct hvd_gpu_steps *steps)
{
    const struct chunk chunk = chunk_of(pipeline, number);

    hvd_gpu_chunk_move_out(&pipeline->config, &chunk.whole, steps);
}

static void add_collective(const struct hvd_gpu_pipeline *pipeline,
                           const struct chunk *chunk, bool scatters,
                           struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step step =
        hvd_gpu_reduction_step(&pipeline->config.reduction,
                               scatters ? HVD_GPU_REDUCESCATTER : HVD_GPU_ALLGATHER);

    step.from = scatters ? chunk->whole.memory : chunk->shard;
    step.to = scatters ? chunk->shard : chunk->whole.memory;
    step.count = chunk->shard_bytes / (int64_t)hvd_dtype_bytes(step.dtype);
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void add_collectives(struct hvd_gpu_pipeline *pipeline, const struct turn *turn,
                            struct hvd_gpu_steps *steps)
{
    bool is_group = turn->count + (turn->gathered >= 0 ? 1 : 0) > 1;

    if (is_group) {
        hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    }
    if (turn->gathered >= 0) {
        const struct chunk chunk = chunk_of(pipeline, turn->gathered);

        add_collective(pipeline, &chunk, false, steps);
    }
    for (int i = 0; i < turn->count; i++) {
        const struct chunk chunk = chunk_of(pipeline, turn->reduced + i);

        add_collective(pipeline, &chunk, true, steps);
    }
    if (is_group) {
        hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    }
}

/* Adds steps that poison whole tensors if the device is aborted. They cover all chunks,
 * because these run on one stream: only the last chunk gets such steps. */
static void poison_results(const struct hvd_batch *batch, struct hvd_gpu_steps *steps)
{
    for (int64_t i = 0; i < batch->header.count; i++) {
        const struct hvd_entry *entry = batch->entries[i];

        if (!entry->is_zeros) {
            hvd_gpu_steps_add_poison(steps, entry->descriptor.dtype, entry->output,
                                     hvd_descriptor_bytes(&entry->descriptor));
        }
    }
}

/* Launches a turn. One kernel unpacks the chunk before the gathered one, and packs those
 * that are reduced: a chunk is unpacked a turn late, the last one at once. */
static int launch_turn(struct hvd_gpu_pipeline *pipeline, const struct turn *turn,
                       struct hvd_error *err)
{
    bool ends = turn->gathered == pipeline->count - 1;
    bool begins = turn->count > 0 && turn->reduced == 0;
    struct hvd_gpu_job *job = turn->count > 0
                                  ? reduce_job(pipeline, turn->reduced)
                                  : &pipeline->jobs[turn->gathered % PLACES].gather;

    hvd_gpu_job_end(pipeline->config.gpu, job);
    follow_input(pipeline, job);
    if (turn->gathered > 0) {
        unpack_chunk(pipeline, turn->gathered - 1, &job->steps);
    }
    pack_turn(pipeline, turn, &job->steps);
    if (turn->gathered >= 0 && !pipeline->config.is_direct) {
        add_follow(&job->steps, &pipeline->jobs[turn->gathered % PLACES].back);
    }
    add_collectives(pipeline, turn, &job->steps);
    if (ends) {
        unpack_chunk(pipeline, turn->gathered, &job->steps);
        poison_results(pipeline->config.batch, &job->steps);
    }
    return submit_job(pipeline, job, HVD_GPU_COLLECT, begins || ends, err);
}

/* --- fetch and back, on the queues IN and OUT --- */

static int fetch_chunk(struct hvd_gpu_pipeline *pipeline, const struct chunk *chunk,
                       struct hvd_error *err)
{
    struct hvd_gpu_job *job = &chunk->jobs->fetch;

    hvd_gpu_job_end(pipeline->config.gpu, job);
    if (pipeline->config.comm != NULL) {
        add_follow(&job->steps, reduce_job(pipeline, chunk->number));
        hvd_gpu_steps_add_copy(&job->steps, chunk->shard, chunk->host, chunk->own_bytes);
    } else {
        follow_input(pipeline, job);
        /* Wait until the previous chunk in this place of the host memory was copied back.
         * With comm this order is implied: the reduce follows the gather of that
         * chunk. */
        if (chunk->number >= HVD_GPU_WINDOW) {
            add_follow(&job->steps,
                       &pipeline->jobs[(chunk->number - HVD_GPU_WINDOW) % PLACES].back);
        }
        hvd_gpu_chunk_move_in(&pipeline->config, &chunk->whole, &job->steps);
    }
    return submit_job(pipeline, job, HVD_GPU_IN, chunk->number == 0, err);
}

static int copy_back(struct hvd_gpu_pipeline *pipeline, const struct chunk *chunk,
                     struct hvd_error *err)
{
    struct hvd_gpu_job *job = &chunk->jobs->back;

    hvd_gpu_job_end(pipeline->config.gpu, job);
    if (pipeline->config.comm != NULL) {
        hvd_gpu_steps_add_copy(&job->steps, chunk->host, chunk->shard, chunk->own_bytes);
    } else {
        hvd_gpu_chunk_move_out(&pipeline->config, &chunk->whole, &job->steps);
    }
    return submit_job(pipeline, job, HVD_GPU_OUT, is_last(pipeline), err);
}

/* --- the window --- */

/* Posts the receives: other ranks may send before this rank's data is complete. */
static void begin_direct(const struct hvd_gpu_pipeline *pipeline,
                         const struct chunk *chunk)
{
    const struct hvd_gpu_direct_chunk direct_chunk = {
        .data = chunk->shard,
        .scratch = chunk->scratch,
        .bytes = chunk->own_bytes,
        .dtype = pipeline->config.descriptor.dtype,
        .op = pipeline->config.descriptor.op};

    hvd_gpu_direct_begin(chunk->direct, &direct_chunk);
}

/* Begins the next chunk, whose reduce has been launched if there is one. */
static int begin_chunk(struct hvd_gpu_pipeline *pipeline, struct hvd_error *err)
{
    const struct chunk chunk = chunk_of(pipeline, pipeline->begun);
    int status = 0;

    if (pipeline->config.is_direct) {
        begin_direct(pipeline, &chunk);
    } else {
        status = fetch_chunk(pipeline, &chunk, err);
    }
    pipeline->begun++;
    return status;
}

static int begin_turn(struct hvd_gpu_pipeline *pipeline, const struct turn *turn,
                      struct hvd_error *err)
{
    int status = launch_turn(pipeline, turn, err);

    for (int i = 0; status == 0 && i < turn->count; i++) {
        status = begin_chunk(pipeline, err);
    }
    return status;
}

/* Begins chunks until the window is full. With comm these are the chunks of the first
 * window: each later one begins in the turn that gathers a chunk. */
static int fill_window(struct hvd_gpu_pipeline *pipeline, bool *moved,
                       struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && pipeline->begun < pipeline->count &&
           pipeline->begun < pipeline->added + HVD_GPU_WINDOW) {
        const struct turn turn = {.gathered = -1,
                                  .reduced = pipeline->begun,
                                  .count = reduced_together(pipeline, pipeline->begun)};

        status = pipeline->config.comm != NULL ? begin_turn(pipeline, &turn, err)
                                               : begin_chunk(pipeline, err);
        *moved = true;
    }
    return status;
}

static int return_chunk(struct hvd_gpu_pipeline *pipeline, const struct chunk *chunk,
                        struct hvd_error *err)
{
    const struct turn turn = {.gathered = chunk->number,
                              .reduced = pipeline->begun,
                              .count = pipeline->begun < pipeline->count ? 1 : 0};
    int status = pipeline->config.is_direct ? 0 : copy_back(pipeline, chunk, err);

    return status != 0 || pipeline->config.comm == NULL
               ? status
               : begin_turn(pipeline, &turn, err);
}

/* --- add --- */

/* Returns 0 when the chunk's data is ready to be summed. */
static int await_chunk(struct hvd_gpu_pipeline *pipeline, const struct chunk *chunk,
                       struct hvd_error *err)
{
    const struct hvd_gpu_job *reduce = reduce_job(pipeline, chunk->number);
    int status = hvd_gpu_job_launched(reduce, err);

    if (status != 0) {
        return status;
    }
    status =
        hvd_gpu_job_reached(chunk->direct != NULL ? reduce : &chunk->jobs->fetch, err);
    /* Wait for the previous chunk with these jobs. */
    return status != 0 ? status : hvd_gpu_job_launched(&chunk->jobs->back, err);
}

static int begin_adding(struct hvd_gpu_pipeline *pipeline, struct hvd_error *err)
{
    struct chunk chunk = chunk_of(pipeline, pipeline->added);
    const struct hvd_batch_header header = {.kind = HVD_KIND_ALLREDUCE, .count = 1};
    struct hvd_entry *const entries[] = {&pipeline->entry};

    if (pipeline->config.comm == NULL) {
        hvd_gpu_chunk_zero_now(&pipeline->config, &chunk.whole);
    }
    pipeline->entry = (struct hvd_entry){.descriptor = pipeline->config.descriptor,
                                         .input = chunk.host,
                                         .output = chunk.host};
    pipeline->entry.descriptor.kind = HVD_KIND_ALLREDUCE;
    pipeline->entry.descriptor.device = HVD_DEVICE_CPU;
    pipeline->entry.descriptor.name = pipeline->config.batch->entries[0]->descriptor.name;
    pipeline->entry.descriptor.ndim = 1;
    pipeline->entry.descriptor.shape[0] =
        chunk.own_bytes / (int64_t)hvd_dtype_bytes(pipeline->entry.descriptor.dtype);
    return hvd_run_create(pipeline->config.team, &header, entries, NULL, &pipeline->run,
                          err);
}

/* Advances a direct chunk. Returns 0 when it is summed. */
static int exchange_chunk(struct hvd_gpu_pipeline *pipeline, int64_t number, bool *moved,
                          struct hvd_error *err)
{
    struct chunk chunk = chunk_of(pipeline, number);
    int status;

    if (!hvd_gpu_direct_has_started(chunk.direct)) {
        status = await_chunk(pipeline, &chunk, err);
        if (status != 0) {
            return status;
        }
        if (number == 0) {
            hvd_gpu_trace_collect(*pipeline->config.trace);
        }
        hvd_gpu_direct_start(chunk.direct);
        *moved = true;
    }
    return hvd_gpu_direct_progress(chunk.direct, moved, err);
}

/* Advances all direct chunks. Returns 0 when the next chunk is summed. Chunks after it
 * may be summed before it. */
static int exchange_chunks(struct hvd_gpu_pipeline *pipeline, bool *moved,
                           struct hvd_error *err)
{
    int next = exchange_chunk(pipeline, pipeline->added, moved, err);
    int status = next;

    for (int64_t i = pipeline->added + 1; status >= 0 && i < pipeline->begun; i++) {
        status = exchange_chunk(pipeline, i, moved, err);
    }
    return status < 0 ? status : next;
}

/* Returns 0 when the next chunk is summed. */
static int add_chunk(struct hvd_gpu_pipeline *pipeline, int64_t *work, bool *moved,
                     struct hvd_error *err)
{
    int status;

    if (pipeline->config.is_direct) {
        return exchange_chunks(pipeline, moved, err);
    }
    if (pipeline->run == NULL) {
        const struct chunk chunk = chunk_of(pipeline, pipeline->added);

        status = await_chunk(pipeline, &chunk, err);
        if (status == 0 && pipeline->added == 0) {
            hvd_gpu_trace_collect(*pipeline->config.trace);
        }
        if (status == 0) {
            status = begin_adding(pipeline, err);
        }
        if (status != 0) {
            return status;
        }
        *moved = true;
    }
    status = hvd_run_progress(pipeline->run, work, moved);
    return status >= 0 ? status : hvd_fail(err, status, "%s", hvd_status_name(status));
}

static int end_chunk(struct hvd_gpu_pipeline *pipeline, struct hvd_error *err)
{
    struct chunk chunk = chunk_of(pipeline, pipeline->added);
    int status;

    hvd_run_destroy(pipeline->run);
    pipeline->run = NULL;
    if (is_last(pipeline)) {
        bool is_between = pipeline->config.team->layout->nodes > 1;

        hvd_gpu_trace_host(*pipeline->config.trace,
                           hvd_timeline_transport(HVD_KIND_ALLREDUCE, is_between));
    }
    status = return_chunk(pipeline, &chunk, err);
    pipeline->added++;
    return status;
}

/* --- all chunks --- */

int hvd_gpu_pipeline_progress(struct hvd_gpu_pipeline *pipeline, int64_t *work,
                              bool *moved, struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && pipeline->added < pipeline->count) {
        status = fill_window(pipeline, moved, err);
        if (status == 0) {
            status = add_chunk(pipeline, work, moved, err);
        }
        if (status == 0) {
            status = end_chunk(pipeline, err);
        }
    }
    return status;
}

int hvd_gpu_pipeline_end(struct hvd_gpu_pipeline *pipeline, struct hvd_gpu_mark **end,
                         enum hvd_gpu_queue *queue, struct hvd_error *err)
{
    const struct chunk_jobs *last = &pipeline->jobs[(pipeline->count - 1) % PLACES];
    const struct hvd_gpu_job *job =
        pipeline->config.comm != NULL ? &last->gather : &last->back;
    int status = 0;

    for (int i = 0; status == 0 && i < PLACES; i++) {
        status = hvd_gpu_job_launched(&pipeline->jobs[i].back, err);
        status =
            status != 0 ? status : hvd_gpu_job_launched(&pipeline->jobs[i].gather, err);
    }
    if (status != 0) {
        return status;
    }
    *end = job->mark;
    *queue = job->work.queue;
    hvd_gpu_mark_hold(job->mark, &pipeline->device);
    hvd_gpu_mark_hold(job->mark, &pipeline->host);
    hvd_gpu_mark_hold(job->mark, &pipeline->scratch);
    return 0;
}

bool hvd_gpu_pipeline_is_held(const struct hvd_gpu_pipeline *pipeline)
{
    bool is_held = false;

    for (int i = 0; pipeline != NULL && i < PLACES; i++) {
        const struct chunk_jobs *jobs = &pipeline->jobs[i];

        is_held |= hvd_gpu_job_is_held(&jobs->reduce) ||
                   hvd_gpu_job_is_held(&jobs->fetch) ||
                   hvd_gpu_job_is_held(&jobs->back) || hvd_gpu_job_is_held(&jobs->gather);
    }
    for (int i = 0; pipeline != NULL && i < HVD_GPU_WINDOW; i++) {
        is_held |= hvd_gpu_direct_is_held(pipeline->directs[i]);
    }
    return is_held;
}

void hvd_gpu_pipeline_destroy(struct hvd_gpu_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    hvd_run_destroy(pipeline->run);
    for (int i = 0; i < PLACES; i++) {
        struct chunk_jobs *jobs = &pipeline->jobs[i];

        hvd_gpu_job_end(pipeline->config.gpu, &jobs->reduce);
        hvd_gpu_job_end(pipeline->config.gpu, &jobs->fetch);
        hvd_gpu_job_end(pipeline->config.gpu, &jobs->back);
        hvd_gpu_job_end(pipeline->config.gpu, &jobs->gather);
    }
    for (int i = 0; i < HVD_GPU_WINDOW; i++) {
        hvd_gpu_direct_destroy(pipeline->directs[i]);
    }
    hvd_gpu_buffer_drop(pipeline->scratch);
    hvd_gpu_buffer_drop(pipeline->device);
    hvd_gpu_buffer_drop(pipeline->host);
    free(pipeline);
}
