/* SPDX-License-Identifier: Apache-2.0 */
/* What a piece of a pipe does on the device: the steps of its jobs. */
#include <string.h>

#include "collectives/gpu/gpu_pipe_state.h"

int64_t hvd_gpu_rounded_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

int64_t hvd_gpu_count_of(const struct hvd_proposal *proposal)
{
    return hvd_proposal_bytes(proposal) / (int64_t)hvd_dtype_bytes(proposal->dtype);
}

struct hvd_gpu_piece hvd_gpu_piece_of(struct hvd_gpu_pipe *pipe, int64_t number)
{
    const struct hvd_gpu_pipe_config *config = &pipe->config;
    int64_t at = number % HVD_GPU_WINDOW;
    struct hvd_gpu_piece piece = {.begin = number * pipe->piece_bytes,
                                  .jobs = &pipe->window[at]};
    int64_t left = pipe->bytes - piece.begin;

    piece.bytes = left < pipe->piece_bytes ? left : pipe->piece_bytes;
    piece.part_bytes = piece.bytes;
    if (config->is_direct) {
        piece.exchange = pipe->exchanges[at];
        piece.versions = pipe->versions->memory + at * pipe->room_bytes;
    } else {
        piece.host = pipe->host->memory + at * pipe->part_bytes;
    }
    if (config->comm != NULL) {
        piece.part_bytes = hvd_gpu_rounded_up(
            (piece.bytes + config->parts - 1) / config->parts, HVD_GPU_PART_ALIGNMENT);
        piece.device = pipe->device->memory + at * config->parts * pipe->part_bytes;
        piece.part = piece.device + config->part * piece.part_bytes;
    }
    left = piece.bytes - config->part * piece.part_bytes;
    piece.own_bytes = left < 0 ? 0 : left < piece.part_bytes ? left : piece.part_bytes;
    return piece;
}

/* --- steps --- */

static void add_follow(struct hvd_gpu_steps *steps, const struct hvd_gpu_job *job)
{
    hvd_gpu_steps_add(
        steps, &(struct hvd_gpu_step){.kind = HVD_GPU_FOLLOW, .event = job->mark->event});
}

/* What a piece and a tensor have in common: so many bytes of the piece. */
struct common {
    const struct hvd_gpu_pipe_config *config;
    struct hvd_entry *entry;
    int64_t in_entry; /* where it begins, bytes of the tensor */
    int64_t in_piece;
    int64_t bytes;
};

/* Calls see for each tensor with a share in the piece, in order. */
static void walk(const struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                 void (*see)(const struct common *common, char *memory,
                             struct hvd_gpu_steps *steps),
                 char *memory, struct hvd_gpu_steps *steps)
{
    const struct hvd_batch *batch = pipe->config.batch;
    int64_t size = (int64_t)hvd_dtype_bytes(pipe->config.proposal.dtype);
    int64_t entry_size = (int64_t)hvd_dtype_bytes(batch->entries[0]->proposal.dtype);
    int64_t at = 0, end = piece->begin + piece->bytes;

    for (int64_t i = 0; i < batch->header.count && at < end; i++) {
        int64_t next = at + hvd_gpu_count_of(&batch->entries[i]->proposal) * size;
        int64_t from = at > piece->begin ? at : piece->begin;
        int64_t to = next < end ? next : end;
        struct common common = {.config = &pipe->config,
                                .entry = batch->entries[i],
                                .in_entry = (from - at) / size * entry_size,
                                .in_piece = from - piece->begin,
                                .bytes = to - from};

        if (common.bytes > 0) {
            see(&common, memory, steps);
        }
        at = next;
    }
}

/* A copy, but where only kernels can do it. */
static void add_move(const struct common *common, struct hvd_gpu_step move,
                     struct hvd_gpu_steps *steps)
{
    bool is_plain = move.factor == 1.0 && move.divisor <= 1 &&
                    hvd_dtype_bytes(move.dtype) == hvd_dtype_bytes(move.to_dtype);

    if (is_plain) {
        hvd_gpu_steps_add_copy(steps, move.from, move.to, common->bytes);
    } else {
        move.kind = HVD_GPU_MOVE;
        move.count =
            common->bytes / (int64_t)hvd_dtype_bytes(common->config->proposal.dtype);
        hvd_gpu_steps_add(steps, &move);
    }
}

static void move_in(const struct common *common, char *memory,
                    struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = common->entry;
    struct hvd_gpu_step move = {.to = memory + common->in_piece,
                                .dtype = entry->proposal.dtype,
                                .to_dtype = common->config->proposal.dtype,
                                .factor = common->config->before};

    if (!entry->is_absent) {
        move.from = (const char *)entry->input + common->in_entry;
        add_move(common, move, steps);
    }
}

static void move_out(const struct common *common, char *memory,
                     struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = common->entry;
    struct hvd_gpu_step move = {.from = memory + common->in_piece,
                                .dtype = common->config->proposal.dtype,
                                .to_dtype = entry->proposal.dtype,
                                .factor = common->config->after,
                                .divisor = common->config->divisor};

    if (!entry->is_absent) {
        move.to = (char *)entry->output + common->in_entry;
        add_move(common, move, steps);
    }
}

/* What comes from a joined rank: zeros. */
static void zero_on_device(const struct common *common, char *memory,
                           struct hvd_gpu_steps *steps)
{
    if (common->entry->is_absent) {
        hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = HVD_GPU_ZERO,
                                                        .to = memory + common->in_piece,
                                                        .count = common->bytes});
    }
}

static void zero_on_host(const struct common *common, char *memory,
                         struct hvd_gpu_steps *steps)
{
    (void)steps;
    if (common->entry->is_absent) {
        memset(memory + common->in_piece, 0, (size_t)common->bytes);
    }
}

static void add_collective(const struct hvd_gpu_pipe *pipe,
                           const struct hvd_gpu_piece *piece, bool scatters,
                           struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step step = pipe->config.reduction;

    step.kind = scatters ? HVD_GPU_REDUCESCATTER : HVD_GPU_ALLGATHER;
    step.from = scatters ? piece->device : piece->part;
    step.to = scatters ? piece->part : piece->device;
    step.count = piece->part_bytes / (int64_t)hvd_dtype_bytes(step.dtype);
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

/* --- a piece --- */

/* The caller's streams are done with input and output when the first piece begins. */
static void follow_input(const struct hvd_gpu_pipe *pipe, struct hvd_gpu_job *job)
{
    const struct hvd_batch *batch = pipe->config.batch;

    if (pipe->begun == 0) {
        hvd_gpu_steps_follow(&job->steps, batch->entries, (int)batch->header.count);
    }
}

/* The timeline shows the first piece on its way to the host and the last one on its way
 * back; what is between them is the hosts'. */
static int submit(struct hvd_gpu_pipe *pipe, struct hvd_gpu_job *job,
                  enum hvd_gpu_queue queue, bool is_shown, struct hvd_error *err)
{
    const struct hvd_gpu_pipe_config *config = &pipe->config;
    bool collects = queue == HVD_GPU_COLLECT;

    if (is_shown) {
        hvd_gpu_trace_work(config->trace, config->gpu, HVD_KIND_ALLREDUCE, queue,
                           &job->work);
    }
    return hvd_gpu_job_submit(config->gpu, job, queue, collects ? config->comm : NULL,
                              err);
}

static bool is_first(const struct hvd_gpu_pipe *pipe)
{
    return pipe->begun == 0;
}

static bool is_last(const struct hvd_gpu_pipe *pipe)
{
    return pipe->added == pipe->count - 1;
}

static int reduce(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                  struct hvd_error *err)
{
    struct hvd_gpu_job *job = &piece->jobs->reduce;

    hvd_gpu_job_end(pipe->config.gpu, job);
    follow_input(pipe, job);
    walk(pipe, piece, move_in, piece->device, &job->steps);
    walk(pipe, piece, zero_on_device, piece->device, &job->steps);
    add_collective(pipe, piece, true, &job->steps);
    return submit(pipe, job, HVD_GPU_COLLECT, is_first(pipe), err);
}

static int fetch(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                 struct hvd_error *err)
{
    struct hvd_gpu_job *job = &piece->jobs->fetch;

    hvd_gpu_job_end(pipe->config.gpu, job);
    if (pipe->config.comm != NULL) {
        add_follow(&job->steps, &piece->jobs->reduce);
        hvd_gpu_steps_add_copy(&job->steps, piece->part, piece->host, piece->own_bytes);
    } else {
        follow_input(pipe, job);
        /* What was here before has gone back; with comm, the gather before this reduce
         * saw to it. */
        if (piece->jobs->back.is_submitted) {
            add_follow(&job->steps, &piece->jobs->back);
        }
        walk(pipe, piece, move_in, piece->host, &job->steps);
    }
    return submit(pipe, job, HVD_GPU_IN, is_first(pipe), err);
}

void hvd_gpu_piece_zero(const struct hvd_gpu_pipe *pipe,
                        const struct hvd_gpu_piece *piece)
{
    if (pipe->config.comm == NULL) {
        walk(pipe, piece, zero_on_host, piece->host, NULL);
    }
}

/* The others' shares may come before this rank's are there. */
static void begin_exchange(const struct hvd_gpu_pipe *pipe,
                           const struct hvd_gpu_piece *piece)
{
    const struct hvd_gpu_exchanged exchanged = {.data = piece->part,
                                                .room = piece->versions,
                                                .bytes = piece->own_bytes,
                                                .dtype = pipe->config.proposal.dtype,
                                                .op = pipe->config.proposal.op};

    hvd_gpu_exchange_begin(piece->exchange, &exchanged);
}

int hvd_gpu_piece_bring(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                        struct hvd_error *err)
{
    int status = pipe->config.comm != NULL ? reduce(pipe, piece, err) : 0;

    if (pipe->config.is_direct) {
        begin_exchange(pipe, piece);
        return status;
    }
    return status != 0 ? status : fetch(pipe, piece, err);
}

static int back(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                struct hvd_error *err)
{
    struct hvd_gpu_job *job = &piece->jobs->back;

    hvd_gpu_job_end(pipe->config.gpu, job);
    if (pipe->config.comm != NULL) {
        hvd_gpu_steps_add_copy(&job->steps, piece->host, piece->part, piece->own_bytes);
    } else {
        walk(pipe, piece, move_out, piece->host, &job->steps);
    }
    return submit(pipe, job, HVD_GPU_OUT, is_last(pipe), err);
}

static int gather(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                  struct hvd_error *err)
{
    struct hvd_gpu_job *job = &piece->jobs->gather;

    hvd_gpu_job_end(pipe->config.gpu, job);
    if (!pipe->config.is_direct) {
        add_follow(&job->steps, &piece->jobs->back);
    }
    add_collective(pipe, piece, false, &job->steps);
    walk(pipe, piece, move_out, piece->device, &job->steps);
    return submit(pipe, job, HVD_GPU_COLLECT, is_last(pipe), err);
}

int hvd_gpu_piece_return(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                         struct hvd_error *err)
{
    int status = pipe->config.is_direct ? 0 : back(pipe, piece, err);

    return status != 0 || pipe->config.comm == NULL ? status : gather(pipe, piece, err);
}
