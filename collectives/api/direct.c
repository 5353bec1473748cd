/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once. */
#include "collectives/api/direct.h"

#include <sched.h>
#include <stdlib.h>

#include "collectives/engine/engine_state.h"
#include "collectives/execute/run.h"
#include "collectives/transport/shm/shm_reach.h"

/* Steps of the whole may be looked after between two stretches of this much work. */
static const int64_t stretch_bytes = 1 << 20;

/* Polls in vain before messages and failures are looked at. */
static const unsigned look_every = 64;

/* Polls in vain before the processor is offered to others: with enough of them another program may
 * have the one that a rank needs. */
static const unsigned patience = 4096;

/* The same where ranks share cpus: the one that is waited for may be next on this one. A barrier of
 * 4 ranks on 2 cpus takes 1.6 us, 2.8 with ten times as many. Of calls of this kind only: requests
 * wait as hvd_engine_yield_every says. */
static const unsigned crowded_patience = 2;

struct hvd_direct {
    struct hvd_request *request;
    struct hvd_run *run;
    bool leaks; /* the job has failed, and another rank may still write there */
};

static struct hvd_engine *opened;
static const struct hvd_choices *forced;

/* From open to close this thread drives, but not between two calls: there the program computes. */
static void pause_driving(const struct hvd_engine *engine)
{
    hvd_float_env_leave(&engine->drivers_floats);
}

static void go_on_driving(struct hvd_engine *engine)
{
    hvd_float_env_enter(&engine->drivers_floats);
}

int hvd_direct_open(struct hvd_error *err)
{
    struct hvd_engine *engine = hvd_job_enter(err);

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_engine_take_over(engine);
    opened = engine;
    while (!hvd_shm_settle(engine->shm) && !engine->has_failed) {
        hvd_engine_progress(engine);
        sched_yield();
    }
    pause_driving(engine);
    return 0;
}

void hvd_direct_close(void)
{
    go_on_driving(opened);
    hvd_engine_hand_back(opened);
    opened = NULL;
    hvd_job_exit();
}

void hvd_direct_choose(const struct hvd_choices *choices)
{
    forced = choices;
}

/* As hvd_run_create, by the algorithms that are forced. */
static int create_run(struct hvd_team *team, const struct hvd_batch *batch,
                      const int64_t *rows, struct hvd_run **out, struct hvd_error *err)
{
    const struct hvd_choices own = team->choices;
    int status;

    team->choices = forced != NULL ? *forced : own;
    status = hvd_run_create(team, &batch->header, batch->entries, rows, out, err);
    team->choices = own;
    return status;
}

/* Who calls sees to it that they are on all ranks, or on none. */
static bool are_shared(const struct hvd_request *request)
{
    bool are = true;

    for (int i = 0; i < request->count; i++) {
        are = are && request->entries[i].proposal.is_shared;
    }
    return are;
}

static int plan_run(struct hvd_direct *direct, const struct hvd_start *start,
                    struct hvd_error *err)
{
    struct hvd_request *request = direct->request;
    struct hvd_team *team = hvd_teams_lane(opened->teams, HVD_LANE_SPARE);
    const struct hvd_batch_header header = {
        .kind = start->kind,
        .count = request->count,
        .max_block = request->entries[0].proposal.max_block,
        .is_shared = are_shared(request),
    };
    struct hvd_batch *batch;
    int64_t *rows;
    int status;

    batch = hvd_batch_create(&header);
    rows = calloc((size_t)opened->boot->size, sizeof(rows[0]));
    if (batch == NULL || rows == NULL) {
        hvd_batch_destroy(batch);
        free(rows);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word);
    }
    for (int i = 0; i < request->count; i++) {
        batch->entries[i] = &request->entries[i];
    }
    for (int i = 0; i < opened->boot->size; i++) {
        rows[i] = request->entries[0].proposal.shape[0];
    }
    go_on_driving(opened);
    status = create_run(team, batch, rows, &direct->run, err);
    pause_driving(opened);
    hvd_batch_destroy(batch);
    free(rows);
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
    status = hvd_check_place(opened, start, err);
    for (int i = 0; status == 0 && i < count; i++) {
        status = hvd_check_entry(start, &tensors[i], &direct->request->entries[i], err);
    }
    status = status != 0 ? status : plan_run(direct, start, err);
    if (status != 0) {
        hvd_direct_destroy(direct);
        return status;
    }
    *out = direct;
    return 0;
}

static unsigned patience_of(const struct hvd_engine *engine)
{
    return engine->net != NULL  ? hvd_engine_yield_every(engine)
           : engine->is_crowded ? crowded_patience
                                : patience;
}

/* Nothing of the run has moved for a while. */
static void look_around(struct hvd_engine *engine, unsigned polls)
{
    if (engine->net != NULL) {
        hvd_net_progress(engine->net);
    }
    if (polls % look_every == 0) {
        hvd_engine_progress(engine);
    }
    if (polls % patience_of(engine) == 0) {
        sched_yield();
    }
}

/* 0, HVD_INPROGRESS when the job has failed, or the failure of the run. */
static int run_to_end(struct hvd_direct *direct, struct hvd_engine *engine)
{
    unsigned polls = 0;
    int status;

    do {
        int64_t work = stretch_bytes;
        bool moved = false;

        status = hvd_run_progress(direct->run, &work, &moved);
        polls = moved ? 0 : polls + 1;
        if (status == HVD_INPROGRESS && !moved) {
            look_around(engine, polls);
        }
    } while (status == HVD_INPROGRESS && !engine->has_failed);
    return status;
}

int hvd_direct_run(struct hvd_direct *direct, struct hvd_error *err)
{
    struct hvd_engine *engine = opened;
    int status;

    go_on_driving(engine);
    status = run_to_end(direct, engine);
    pause_driving(engine);
    if (status != 0) {
        direct->leaks = engine->leaks;
        return hvd_fail(err, engine->has_failed ? HVD_ERR_PEER : status, "%s",
                        engine->has_failed ? engine->refusal.text
                                           : hvd_status_name(status));
    }
    return hvd_run_again(direct->run);
}

const void *hvd_direct_result(const struct hvd_direct *direct)
{
    return direct->request->entries[0].result;
}

void hvd_direct_destroy(struct hvd_direct *direct)
{
    if (direct != NULL && !direct->leaks) {
        hvd_run_destroy(direct->run);
        hvd_request_destroy(direct->request);
        free(direct);
    }
}
