/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch: executes its schedule, stopping wherever it would have to wait. */
#include "collectives/run/run.h"

#include "collectives/run/run_adasum.h"
#include "collectives/run/run_state.h"

/* What any step costs, as bytes touched. */
static const int64_t least_work = 512;

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

static void do_reduce_local(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_reduction reduction = run->reduction;
    struct hvd_place place = step->from;
    int count = hvd_team_local_size(run->team);

    for (int i = 0; i < count; i++) {
        place.local_rank = i;
        run->sources[i] = hvd_team_place(run->team, &place);
    }
    reduction.to_partial = step->is_partial;
    hvd_reduce(&reduction, run->sources, count, step->count,
               hvd_team_place(run->team, &step->to));
}

static void do_reduce_nodes(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_reduction reduction = run->reduction;
    const char *from = hvd_team_place(run->team, &step->from);
    int nodes = run->team->layout->nodes;
    int own = hvd_team_node(run->team);

    for (int n = 0; n < nodes; n++) {
        run->sources[n] = n == own ? hvd_team_place(run->team, &step->own)
                                   : from + (size_t)n * step->stride;
    }
    reduction.from_partial = true;
    hvd_reduce(&reduction, run->sources, nodes, step->count,
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
    int from = step->peer < 0 ? 0 : step->peer;
    int to = step->peer < 0 ? hvd_team_local_size(team) : step->peer + 1;

    for (int i = from; i < to; i++) {
        if (!hvd_team_has_signalled(team, i, step->value)) {
            return HVD_INPROGRESS;
        }
    }
    return 0;
}

static int do_step(struct hvd_run *run, const struct hvd_step *step)
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
    case HVD_STEP_REDUCE_NODES:
        do_reduce_nodes(run, step);
        return 0;
    case HVD_STEP_SIGNAL:
        hvd_team_signal(run->team);
        return 0;
    case HVD_STEP_WAIT:
        return do_wait(run, step);
    case HVD_STEP_SEND:
        return do_send(run, step);
    case HVD_STEP_RECV:
        return do_recv(run, step);
    case HVD_STEP_WAIT_SEND:
        return hvd_op_queue_wait(&run->sends, step->value);
    case HVD_STEP_WAIT_RECV:
        return hvd_op_queue_wait(&run->recvs, step->value);
    }
    return HVD_ERR_ARG;
}

/* What a step costs, as bytes touched. */
static int64_t step_work(const struct hvd_run *run, const struct hvd_step *step)
{
    size_t element_bytes = hvd_dtype_bytes(run->reduction.dtype);
    size_t sources =
        (size_t)(step->kind == HVD_STEP_REDUCE_LOCAL ? hvd_team_local_size(run->team)
                                                     : run->team->layout->nodes);

    return least_work + (int64_t)(step->bytes + step->count * element_bytes * sources);
}

/* Runs the current schedule on. Returns 0 at its end. */
static int progress_schedule(struct hvd_run *run, int64_t *work, bool *moved)
{
    while (*work > 0) {
        const struct hvd_step *step;
        int status;

        if (run->step == run->step_count) {
            if (run->tick == hvd_schedule_ticks(run->schedule)) {
                return 0;
            }
            run->step_count = hvd_schedule_tick(run->schedule, run->tick++, &run->steps);
            run->step = 0;
            continue;
        }
        step = &run->steps[run->step];
        status = do_step(run, step);
        if (status != 0) {
            return status;
        }
        *work -= step_work(run, step);
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
    run->team->base += hvd_schedule_signals(run->schedule);
    hvd_op_queue_finish(&run->sends);
    hvd_op_queue_finish(&run->recvs);
    return 0;
}

int hvd_run_progress(struct hvd_run *run, int64_t *work, bool *moved)
{
    while (!run->is_done) {
        int status = run->is_computing ? hvd_run_adasum_compute(run, work, moved)
                                       : finish_schedule(run, work, moved);

        status = status != 0 ? status : hvd_run_next_schedule(run);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
