/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce of GPU tensors in pieces, of which several are under way. */
#include <stdlib.h>

#include "collectives/gpu/gpu_pipe_state.h"
#include "collectives/observe/timeline_words.h"
#include "gpu_binding/base/error.h"

/* Slots of the team in a part. The most are 2 MiB: the network and the bus to the device
 * take some 100 us each for it, so that what starting a piece costs is little. A batch of
 * less than a window of such pieces is cut smaller, for what does not overlap adds up;
 * below the least, 512 KiB, starting them would cost more. Not measured between real
 * GPUs. */
static const size_t most_slots = 8;
static const size_t least_slots = 2;

int64_t hvd_gpu_pipe_part_bytes(const struct hvd_team *team)
{
    return (int64_t)(most_slots * team->geometry.slot_bytes);
}

/* Of what each rank of the node has to move. */
static int64_t choose_part_bytes(const struct hvd_team *team, int64_t each)
{
    int64_t most = hvd_gpu_pipe_part_bytes(team);
    int64_t least = (int64_t)(least_slots * team->geometry.slot_bytes);
    int64_t bytes = hvd_gpu_rounded_up((each + HVD_GPU_WINDOW - 1) / HVD_GPU_WINDOW,
                                       HVD_GPU_PART_ALIGNMENT);

    bytes = bytes < least ? least : bytes;
    bytes = bytes > most ? most : bytes;
    each = hvd_gpu_rounded_up(each > 0 ? each : 1, HVD_GPU_PART_ALIGNMENT);
    return bytes > each ? each : bytes;
}

int64_t hvd_gpu_batch_bytes(const struct hvd_batch *batch, enum hvd_dtype dtype)
{
    int64_t count = 0;

    for (int64_t i = 0; i < batch->header.count; i++) {
        count += hvd_gpu_count_of(&batch->entries[i]->proposal);
    }
    return count * (int64_t)hvd_dtype_bytes(dtype);
}

static int open_exchanges(struct hvd_gpu_pipe *pipe, int64_t places,
                          struct hvd_error *err)
{
    const struct hvd_gpu_pipe_config *config = &pipe->config;
    int status;

    pipe->room_bytes = hvd_gpu_exchange_room(config->team, pipe->part_bytes);
    status = hvd_gpu_room_take(config->gpu->pool, HVD_GPU_DEVICE_MEMORY,
                               (size_t)(places * pipe->room_bytes), &pipe->versions, err);
    for (int i = 0; status == 0 && i < places; i++) {
        status = hvd_gpu_exchange_create(config->gpu, config->team, i,
                                         &pipe->exchanges[i], err);
    }
    return status;
}

static int take_rooms(struct hvd_gpu_pipe *pipe, struct hvd_error *err)
{
    const struct hvd_gpu_pipe_config *config = &pipe->config;
    int64_t places = pipe->count < HVD_GPU_WINDOW ? pipe->count : HVD_GPU_WINDOW;
    size_t bytes = (size_t)(places * pipe->part_bytes);
    int status = config->is_direct
                     ? open_exchanges(pipe, places, err)
                     : hvd_gpu_room_take(config->gpu->pool, HVD_GPU_HOST_MEMORY, bytes,
                                         &pipe->host, err);

    return status != 0 || config->comm == NULL
               ? status
               : hvd_gpu_room_take(config->gpu->pool, HVD_GPU_DEVICE_MEMORY,
                                   bytes * (size_t)config->parts, &pipe->device, err);
}

int hvd_gpu_pipe_create(const struct hvd_gpu_pipe_config *config,
                        struct hvd_gpu_pipe **out, struct hvd_error *err)
{
    struct hvd_gpu_pipe *pipe = calloc(1, sizeof(*pipe));
    int status;

    if (pipe == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a batch");
    }
    pipe->config = *config;
    pipe->bytes = hvd_gpu_batch_bytes(config->batch, config->proposal.dtype);
    pipe->part_bytes = choose_part_bytes(config->team, (pipe->bytes + config->parts - 1) /
                                                           config->parts);
    pipe->piece_bytes = pipe->part_bytes * config->parts;
    pipe->count = (pipe->bytes + pipe->piece_bytes - 1) / pipe->piece_bytes;
    pipe->count = pipe->count > 0 ? pipe->count : 1;
    status = take_rooms(pipe, err);
    if (status != 0) {
        hvd_gpu_pipe_destroy(pipe);
        return status;
    }
    *out = pipe;
    return 0;
}

static int begin_piece(struct hvd_gpu_pipe *pipe, struct hvd_error *err)
{
    struct hvd_gpu_piece piece = hvd_gpu_piece_of(pipe, pipe->begun);
    int status = hvd_gpu_piece_bring(pipe, &piece, err);

    pipe->begun++;
    return status;
}

/* Returns 0 when a piece to add up is where that is done. */
static int await_piece(const struct hvd_gpu_piece *piece, struct hvd_error *err)
{
    const struct hvd_gpu_jobs *jobs = piece->jobs;
    int status = hvd_gpu_job_launched(&jobs->reduce, err);

    status = status != 0
                 ? status
                 : hvd_gpu_job_reached(
                       piece->exchange != NULL ? &jobs->reduce : &jobs->fetch, err);
    /* Of the piece that was here before. */
    status = status != 0 ? status : hvd_gpu_job_launched(&jobs->back, err);
    return status != 0 ? status : hvd_gpu_job_launched(&jobs->gather, err);
}

static int begin_adding(struct hvd_gpu_pipe *pipe, struct hvd_error *err)
{
    struct hvd_gpu_piece piece = hvd_gpu_piece_of(pipe, pipe->added);
    const struct hvd_batch_header header = {.kind = HVD_KIND_ALLREDUCE, .count = 1};
    struct hvd_entry *const entries[] = {&pipe->entry};

    hvd_gpu_piece_zero(pipe, &piece);
    pipe->entry = (struct hvd_entry){
        .proposal = pipe->config.proposal, .input = piece.host, .output = piece.host};
    pipe->entry.proposal.kind = HVD_KIND_ALLREDUCE;
    pipe->entry.proposal.device = HVD_DEVICE_CPU;
    pipe->entry.proposal.name = pipe->config.batch->entries[0]->proposal.name;
    pipe->entry.proposal.ndim = 1;
    pipe->entry.proposal.shape[0] =
        piece.own_bytes / (int64_t)hvd_dtype_bytes(pipe->entry.proposal.dtype);
    return hvd_run_create(pipe->config.team, &header, entries, NULL, &pipe->run, err);
}

static int end_piece(struct hvd_gpu_pipe *pipe, struct hvd_error *err)
{
    struct hvd_gpu_piece piece = hvd_gpu_piece_of(pipe, pipe->added);
    int status;

    hvd_run_destroy(pipe->run);
    pipe->run = NULL;
    if (pipe->added == pipe->count - 1) {
        bool is_between = pipe->config.team->layout->nodes > 1;

        hvd_gpu_trace_host(*pipe->config.trace,
                           hvd_timeline_transport(HVD_KIND_ALLREDUCE, is_between));
    }
    status = hvd_gpu_piece_return(pipe, &piece, err);
    pipe->added++;
    return status;
}

/* A direct piece goes as far as it can. Returns 0 when it is added up. */
static int exchange_piece(struct hvd_gpu_pipe *pipe, int64_t number, bool *moved,
                          struct hvd_error *err)
{
    struct hvd_gpu_piece piece = hvd_gpu_piece_of(pipe, number);
    int status;

    if (!hvd_gpu_exchange_has_started(piece.exchange)) {
        status = await_piece(&piece, err);
        if (status != 0) {
            return status;
        }
        if (number == 0) {
            hvd_gpu_trace_collect(*pipe->config.trace);
        }
        hvd_gpu_exchange_start(piece.exchange);
        *moved = true;
    }
    return hvd_gpu_exchange_progress(piece.exchange, moved, err);
}

/* --- all of them --- */

/* Returns 0 when the next piece is added up; others may be, too. */
static int exchange_pieces(struct hvd_gpu_pipe *pipe, bool *moved, struct hvd_error *err)
{
    int next = exchange_piece(pipe, pipe->added, moved, err);
    int status = next;

    for (int64_t i = pipe->added + 1; status >= 0 && i < pipe->begun; i++) {
        status = exchange_piece(pipe, i, moved, err);
    }
    return status < 0 ? status : next;
}

/* Returns 0 when the next piece is added up. */
static int add_piece(struct hvd_gpu_pipe *pipe, int64_t *work, bool *moved,
                     struct hvd_error *err)
{
    int status;

    if (pipe->config.is_direct) {
        return exchange_pieces(pipe, moved, err);
    }
    if (pipe->run == NULL) {
        const struct hvd_gpu_piece piece = hvd_gpu_piece_of(pipe, pipe->added);

        status = await_piece(&piece, err);
        if (status == 0 && pipe->added == 0) {
            hvd_gpu_trace_collect(*pipe->config.trace);
        }
        status = status != 0 ? status : begin_adding(pipe, err);
        if (status != 0) {
            return status;
        }
        *moved = true;
    }
    status = hvd_run_progress(pipe->run, work, moved);
    return status >= 0 ? status : hvd_fail(err, status, "%s", hvd_status_name(status));
}

int hvd_gpu_pipe_progress(struct hvd_gpu_pipe *pipe, int64_t *work, bool *moved,
                          struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && pipe->added < pipe->count) {
        while (status == 0 && pipe->begun < pipe->count &&
               pipe->begun < pipe->added + HVD_GPU_WINDOW) {
            status = begin_piece(pipe, err);
            *moved = true;
        }
        status = status != 0 ? status : add_piece(pipe, work, moved, err);
        status = status != 0 ? status : end_piece(pipe, err);
    }
    return status;
}

static void give_room(struct hvd_gpu_mark *mark, struct hvd_gpu_room **room)
{
    if (*room != NULL) {
        (*room)->next = mark->rooms;
        mark->rooms = *room;
        *room = NULL;
    }
}

int hvd_gpu_pipe_end(struct hvd_gpu_pipe *pipe, struct hvd_gpu_mark **end,
                     enum hvd_gpu_queue *queue, struct hvd_error *err)
{
    const struct hvd_gpu_jobs *last = &pipe->window[(pipe->count - 1) % HVD_GPU_WINDOW];
    const struct hvd_gpu_job *job =
        pipe->config.comm != NULL ? &last->gather : &last->back;
    int status = 0;

    for (int i = 0; status == 0 && i < HVD_GPU_WINDOW; i++) {
        status = hvd_gpu_job_launched(&pipe->window[i].back, err);
        status =
            status != 0 ? status : hvd_gpu_job_launched(&pipe->window[i].gather, err);
    }
    if (status != 0) {
        return status;
    }
    *end = job->mark;
    *queue = job->work.queue;
    give_room(job->mark, &pipe->device);
    give_room(job->mark, &pipe->host);
    give_room(job->mark, &pipe->versions);
    return 0;
}

bool hvd_gpu_pipe_is_held(const struct hvd_gpu_pipe *pipe)
{
    bool is_held = false;

    for (int i = 0; pipe != NULL && i < HVD_GPU_WINDOW; i++) {
        const struct hvd_gpu_jobs *jobs = &pipe->window[i];

        is_held |=
            hvd_gpu_job_is_held(&jobs->reduce) || hvd_gpu_job_is_held(&jobs->fetch) ||
            hvd_gpu_job_is_held(&jobs->back) || hvd_gpu_job_is_held(&jobs->gather) ||
            hvd_gpu_exchange_is_held(pipe->exchanges[i]);
    }
    return is_held;
}

void hvd_gpu_pipe_destroy(struct hvd_gpu_pipe *pipe)
{
    if (pipe == NULL) {
        return;
    }
    hvd_run_destroy(pipe->run);
    for (int i = 0; i < HVD_GPU_WINDOW; i++) {
        struct hvd_gpu_jobs *jobs = &pipe->window[i];

        hvd_gpu_job_end(pipe->config.gpu, &jobs->reduce);
        hvd_gpu_job_end(pipe->config.gpu, &jobs->fetch);
        hvd_gpu_job_end(pipe->config.gpu, &jobs->back);
        hvd_gpu_job_end(pipe->config.gpu, &jobs->gather);
        hvd_gpu_exchange_destroy(pipe->exchanges[i]);
    }
    hvd_refcount_drop(pipe->versions != NULL ? &pipe->versions->refcount : NULL);
    hvd_refcount_drop(pipe->device != NULL ? &pipe->device->refcount : NULL);
    hvd_refcount_drop(pipe->host != NULL ? &pipe->host->refcount : NULL);
    free(pipe);
}
