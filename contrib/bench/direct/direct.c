/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once, without agreement, on buffers that
 * were given before. */
#include "contrib/bench/direct/direct.h"

#include <sched.h>
#include <stdlib.h>

#include "collectives/core/job_state.h"
#include "collectives/request/batch.h"
#include "collectives/run/run.h"
#include "collectives/run/team.h"
#include "collectives/run/teams.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/shm_reach.h"
#include "pmix_boot/boot.h"

/* Bytes of work between two checks whether the job has failed. */
static const int64_t stretch_bytes = 1 << 20;

/* Polls without progress after which the rest of the job is polled, too: messages and
 * failures. */
static const unsigned look_every = 64;

/* Polls without progress after which the rank calls sched_yield(): another program may
 * occupy the processor of the rank that it waits for. */
static const unsigned patience = 4096;

/* The same number if ranks share CPUs. It is small because the rank that this one waits
 * for may need this CPU: a barrier of 4 ranks on 2 CPUs takes 1.6 us, and 2.8 us with ten
 * times as many polls. This is for direct calls only; requests wait as progress.c
 * describes. */
static const unsigned crowded_patience = 2;

struct hvd_direct {
    struct hvd_job *job;
    struct hvd_request *request;
    struct hvd_run *run;
    /* the job has failed: destroy frees nothing, because another rank may still write to
     * the memory */
    bool leaks;
};

static struct hvd_job *opened;
static const struct hvd_algorithm_choices *forced; /* NULL: the job's algorithms */

/* Gives the thread the program's floating-point environment until the next call. This
 * thread drives the job from open to close (progress.h), but the program computes between
 * two calls. */
static void pause_driving(struct hvd_job *job)
{
    hvd_float_env_leave(hvd_progress_floats(&job->progress));
}

static void go_on_driving(struct hvd_job *job)
{
    hvd_float_env_enter(hvd_progress_floats(&job->progress));
}

int hvd_direct_open(struct hvd_error *err)
{
    opened = hvd_job_enter(err);
    if (opened == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_progress_lock(opened);
    while (!hvd_shm_settle(opened->shm) && !opened->failure.has_failed) {
        hvd_loop_poll(&opened->loop);
        sched_yield();
    }
    pause_driving(opened);
    return 0;
}

void hvd_direct_close(void)
{
    go_on_driving(opened);
    hvd_progress_unlock(opened);
    opened = NULL;
    hvd_job_exit();
}

void hvd_direct_choose(const struct hvd_algorithm_choices *choices)
{
    forced = choices;
}

/* Creates a run as hvd_run_create does, with the forced algorithms. */
static int create_run(struct hvd_team *team, const struct hvd_batch *batch,
                      struct hvd_run **out, struct hvd_error *err)
{
    const struct hvd_algorithm_choices own = team->choices;
    int status;

    team->choices = forced != NULL ? *forced : own;
    status = hvd_run_create(team, &batch->header, batch->entries, batch->rows, out, err);
    team->choices = own;
    return status;
}

/* Creates a batch in which every rank has as many rows as this one. Returns NULL if out
 * of memory. */
static struct hvd_batch *create_batch(const struct hvd_job *job, enum hvd_kind kind,
                                      struct hvd_request *request)
{
    const struct hvd_batch_header header = {
        .kind = kind,
        .count = request->count,
        .row_count = job->boot->size,
        .max_block = request->entries[0].descriptor.max_block,
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    for (int i = 0; batch != NULL && i < request->count; i++) {
        batch->entries[i] = &request->entries[i];
    }
    for (int i = 0; batch != NULL && i < job->boot->size; i++) {
        batch->rows[i] = request->entries[0].descriptor.shape[0];
    }
    return batch;
}

static int plan_run(struct hvd_direct *direct, struct hvd_start *start,
                    const struct hvd_tensor *tensors, struct hvd_error *err)
{
    struct hvd_batch *batch;
    int status = hvd_start_check(direct->job, start, err);

    for (int i = 0; status == 0 && i < direct->request->count; i++) {
        status =
            hvd_start_fill_entry(start, &tensors[i], &direct->request->entries[i], err);
    }
    if (status != 0) {
        return status;
    }
    batch = create_batch(direct->job, start->kind, direct->request);
    if (batch == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word);
    }
    go_on_driving(direct->job);
    status = create_run(hvd_teams_priority(direct->job->teams, HVD_PRIORITY_SPARE), batch,
                        &direct->run, err);
    pause_driving(direct->job);
    hvd_batch_destroy(batch);
    return status;
}

int hvd_direct_plan(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                    struct hvd_direct **out, struct hvd_error *err)
{
    struct hvd_direct *direct;
    int status;

    if (count != 1 && start->kind != HVD_KIND_ALLREDUCE) {
        return hvd_fail(err, HVD_ERR_ARG, "%s of %d tensors at once: one is needed",
                        start->word, count);
    }
    direct = calloc(1, sizeof(*direct));
    if (direct == NULL || (direct->request = hvd_request_create(count)) == NULL) {
        free(direct);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word);
    }
    direct->job = opened;
    status = plan_run(direct, start, tensors, err);
    if (status != 0) {
        hvd_request_drop(direct->request);
        free(direct);
        return status;
    }
    *out = direct;
    return 0;
}

static unsigned patience_of(const struct hvd_job *job)
{
    return job->net != NULL ? HVD_PROGRESS_YIELD_EVERY_NET
           : hvd_oversubscription_of_ranks(&job->oversubscription) ? crowded_patience
                                                                   : patience;
}

/* Polls the network, and now and then the rest of the job. Called when the run has not
 * moved. */
static void look_around(struct hvd_job *job, unsigned polls)
{
    if (job->net != NULL) {
        hvd_net_progress(job->net, NULL);
    }
    if (polls % look_every == 0) {
        hvd_loop_poll(&job->loop);
    }
    if (polls % patience_of(job) == 0) {
        sched_yield();
    }
}

/* Runs to the end. Returns 0, HVD_INPROGRESS if the job has failed, or the failure of the
 * run. */
static int run_to_end(struct hvd_direct *direct)
{
    struct hvd_job *job = direct->job;
    unsigned polls = 0;
    int status;

    do {
        int64_t work = stretch_bytes;
        bool moved = false;

        status = hvd_run_progress(direct->run, &work, &moved);
        polls = moved ? 0 : polls + 1;
        if (status == HVD_INPROGRESS && !moved) {
            look_around(job, polls);
        }
    } while (status == HVD_INPROGRESS && !hvd_failure_has_come(&job->failure));
    return status;
}

int hvd_direct_run(struct hvd_direct *direct, struct hvd_error *err)
{
    const struct hvd_failure *failure = &direct->job->failure;
    int status;

    go_on_driving(direct->job);
    status = run_to_end(direct);
    pause_driving(direct->job);
    if (status != 0) {
        direct->leaks = hvd_failure_leaks(failure);
        return hvd_failure_has_come(failure)
                   ? hvd_fail(err, HVD_ERR_PEER, "%s", hvd_failure_error(failure)->text)
                   : hvd_fail(err, status, "%s", hvd_status_name(status));
    }
    return hvd_run_again(direct->run);
}

const void *hvd_direct_result(const struct hvd_direct *direct)
{
    const struct hvd_entry *entry = &direct->request->entries[0];

    return entry->output_bytes > 0 ? entry->output : entry->result;
}

void hvd_direct_destroy(struct hvd_direct *direct)
{
    if (direct != NULL && !direct->leaks) {
        hvd_run_destroy(direct->run);
        hvd_request_drop(direct->request);
        free(direct);
    }
}
