/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch: executes its schedule, stopping wherever it would have to wait. */
#include "collectives/execute/run.h"

#include "collectives/execute/run_adasum.h"
#include "collectives/execute/run_convert.h"
#include "collectives/execute/run_reach.h"
#include "collectives/execute/run_shared.h"
#include "collectives/execute/run_state.h"
#include "collectives/execute/run_take.h"

/* What any step costs, as bytes touched. */
static const int64_t least_work = 512;

/* A step that costs more is not begun while a sleeper may have to be woken. */
static const int64_t brief_work = 8192;

/* Looks for a signal before the run is left: who is there for it at all mostly is about
 * to give it, and to come back costs more than to look. */
static const int looks = 64;

static void do_put(struct hvd_run *run, const struct hvd_step *step)
{
    hvd_segments_read(&run->input, step->begin, step->bytes, run->reduction.dtype,
                      run->prescale, hvd_team_place(run->team, &step->to));
}

static void do_get(struct hvd_run *run, const struct hvd_step *step)
{
    hvd_segments_write(&run->output, step->begin, step->bytes,
                       hvd_team_place(run->team, &step->from));
}

/* The same elements of all local ranks, as far as they lie in one piece of memory. */
struct piece {
    size_t at; /* byte offset in the step's elements */
    size_t bytes;
};

/* Sets the sources of a piece, and shortens it. */
static void find_sources(struct hvd_run *run, const struct hvd_step *step,
                         struct piece *piece)
{
    struct hvd_place place = step->from;
    int count = run->team->local_size, own = run->team->local_rank;
    int64_t begin = step->input + (int64_t)piece->at;
    const char *input = hvd_segments_at(&run->input, begin, &piece->bytes);

    place.offset += piece->at;
    for (int i = 0; i < count; i++) {
        place.local_rank = i;
        run->sources[i] = hvd_team_place(run->team, &place);
    }
    if (input != NULL && run->prescale == 1.0) {
        run->sources[own] = input;
    } else if (!step->is_put) {
        hvd_segments_read(&run->input, begin, piece->bytes, run->reduction.dtype,
                          run->prescale, (char *)run->sources[own]);
    }
}

static void do_reduce_local(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_reduction reduction = run->reduction;
    size_t in_bytes = hvd_dtype_bytes(reduction.dtype);
    size_t out_bytes = step->is_partial ? hvd_partial_bytes(reduction.dtype) : in_bytes;
    char *to = hvd_team_place(run->team, &step->to);
    struct piece piece = {0};

    reduction.to_partial = step->is_partial;
    for (size_t left = step->count * in_bytes; left > 0; left -= piece.bytes) {
        piece.at = step->count * in_bytes - left;
        piece.bytes = left;
        find_sources(run, step, &piece);
        hvd_reduce(&reduction, run->sources, run->team->local_size,
                   piece.bytes / in_bytes, to + piece.at / in_bytes * out_bytes);
    }
}

static void do_reduce_out(struct hvd_run *run, const struct hvd_step *step)
{
    size_t element = hvd_dtype_bytes(run->reduction.dtype);
    int count = run->team->local_size;
    struct piece piece = {0};

    for (size_t left = step->count * element; left > 0; left -= piece.bytes) {
        char *to;

        piece.at = step->count * element - left;
        piece.bytes = left;
        to = hvd_segments_at(&run->output, step->begin + (int64_t)piece.at, &piece.bytes);
        find_sources(run, step, &piece);
        if (to != NULL && hvd_segments_streams(&run->output, piece.bytes)) {
            hvd_reduce_stream(&run->reduction, run->sources, count, piece.bytes / element,
                              to);
        } else if (to != NULL) {
            hvd_reduce(&run->reduction, run->sources, count, piece.bytes / element, to);
        }
    }
}

static void do_reduce_nodes(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_reduction reduction = run->reduction;
    const char *from = hvd_team_place(run->team, &step->from);

    for (int n = 0; n < step->sources; n++) {
        run->sources[n] = n == step->own_number ? hvd_team_place(run->team, &step->own)
                                                : from + (size_t)n * step->stride;
    }
    reduction.from_partial = true;
    reduction.to_partial = step->is_partial;
    hvd_reduce(&reduction, run->sources, step->sources, step->count,
               hvd_team_place(run->team, &step->to));
}

static int do_send(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_net_op *op = hvd_op_queue_next(&run->sends);

    if (op == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_team_send(run->team, step->peer, hvd_team_place(run->team, &step->from),
                  step->bytes, op);
    return 0;
}

static int do_recv(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_net_op *op = hvd_op_queue_next(&run->recvs);

    if (op == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_team_recv(run->team, step->peer, hvd_team_place(run->team, &step->to),
                  step->bytes, op);
    return 0;
}

static int do_wait(const struct hvd_run *run, const struct hvd_step *step)
{
    const struct hvd_team *team = run->team;
    int next = step->peer < 0 ? 0 : step->peer;
    int end = step->peer < 0 ? team->local_size : step->peer + 1;

    while (next < end && hvd_team_await(team, next, step->value, looks)) {
        next++;
    }
    return next < end ? HVD_INPROGRESS : 0;
}

/* Steps by which memory is copied or added up, and those that wait for a local rank. */
static int do_local_step(struct hvd_run *run, const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        do_put(run, step);
        return 0;
    case HVD_STEP_GET:
        do_get(run, step);
        return 0;
    case HVD_STEP_REDUCE_LOCAL:
        do_reduce_local(run, step);
        return 0;
    case HVD_STEP_REDUCE_OUT:
        do_reduce_out(run, step);
        return 0;
    case HVD_STEP_REDUCE_NODES:
        do_reduce_nodes(run, step);
        return 0;
    case HVD_STEP_COPY:
        hvd_run_copy(run, step);
        return 0;
    case HVD_STEP_OFFER:
        hvd_run_offer(run, step);
        return 0;
    case HVD_STEP_OFFER_SHARED:
        hvd_run_offer_shared(run, step);
        return 0;
    case HVD_STEP_SIGNAL:
        hvd_team_signal(run->team);
        return 0;
    default:
        return do_wait(run, step);
    }
}

static int do_step(struct hvd_run *run, const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_FETCH:
        return hvd_run_fetch(run, step);
    case HVD_STEP_FETCH_REDUCE:
        return hvd_run_fetch_reduce(run, step);
    case HVD_STEP_REDUCE_SHARED:
        return hvd_run_reduce_shared(run, step);
    case HVD_STEP_STORE:
        return hvd_run_store(run, step);
    case HVD_STEP_SEND:
        return do_send(run, step);
    case HVD_STEP_RECV:
        return do_recv(run, step);
    case HVD_STEP_RECV_REDUCE:
        return hvd_run_recv_reduce(run, step);
    case HVD_STEP_WAIT_SEND:
        return hvd_op_queue_wait(&run->sends, step->value);
    case HVD_STEP_WAIT_RECV:
        return hvd_op_queue_wait(&run->recvs, step->value);
    default:
        return do_local_step(run, step);
    }
}

/* What a step costs, as bytes touched. */
static int64_t step_work(const struct hvd_run *run, const struct hvd_step *step)
{
    size_t element_bytes = hvd_dtype_bytes(run->reduction.dtype);
    size_t sources =
        (size_t)(step->kind == HVD_STEP_REDUCE_NODES ? step->sources
                                                     : run->team->local_size);

    return least_work + (int64_t)(step->bytes + step->count * element_bytes * sources);
}

/* Runs the current schedule on. Returns 0 at its end. */
static int progress_schedule(struct hvd_run *run, int64_t *work, bool *moved)
{
    while (*work > 0) {
        const struct hvd_step *step;
        int64_t cost;
        int status;

        if (run->step == run->step_count) {
            if (run->tick == 0) {
                hvd_team_begin(run->team, run->schedule);
            }
            if (run->tick == hvd_schedule_facts(run->schedule)->ticks) {
                return 0;
            }
            run->step_count = hvd_schedule_tick(run->schedule, run->tick++, &run->steps);
            run->step = 0;
            continue;
        }
        step = &run->steps[run->step];
        cost = step_work(run, step);
        if (cost > brief_work) {
            hvd_team_ring(run->team);
        }
        status = do_step(run, step);
        if (status != 0) {
            return status;
        }
        *work -= cost;
        run->step++;
        *moved = true;
    }
    return HVD_INPROGRESS;
}

/* As progress_schedule, until its messages have ended too. */
static int finish_schedule(struct hvd_run *run, int64_t *work, bool *moved)
{
    int status = progress_schedule(run, work, moved);

    status = status != 0 ? status : hvd_op_queue_wait(&run->sends, run->sends.posted);
    status = status != 0 ? status : hvd_op_queue_wait(&run->recvs, run->recvs.posted);
    if (status != 0) {
        return status;
    }
    hvd_team_end(run->team, run->schedule);
    hvd_op_queue_finish(&run->sends);
    hvd_op_queue_finish(&run->recvs);
    return 0;
}

static int compute(struct hvd_run *run, int64_t *work, bool *moved)
{
    return run->convert != NULL ? hvd_run_convert_compute(run, work, moved)
                                : hvd_run_adasum_compute(run, work, moved);
}

static int progress_schedules(struct hvd_run *run, int64_t *work, bool *moved)
{
    while (!run->is_done) {
        int status = run->is_computing ? compute(run, work, moved)
                                       : finish_schedule(run, work, moved);

        status = status != 0 ? status : hvd_run_next_schedule(run);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

int hvd_run_progress(struct hvd_run *run, int64_t *work, bool *moved)
{
    int status = progress_schedules(run, work, moved);

    hvd_team_ring(run->team);
    return status;
}
