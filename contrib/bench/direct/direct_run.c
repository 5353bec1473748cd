/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once, on agreed buffers. */
#include "contrib/bench/direct/direct_run.h"

#include <sched.h>
#include <stdlib.h>

#include "collectives/request/batch.h"
#include "collectives/core/engine_state.h"
#include "collectives/run/run.h"
#include "collectives/run/team.h"
#include "collectives/run/teams.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/shm_reach.h"
#include "pmix_boot/boot.h"

/* Steps of the whole may be looked after between two stretches of this much work. */
static const int64_t stretch_bytes = 1 << 20;

/* Polls in vain before messages and failures are looked at. */
static const unsigned look_every = 64;

/* Polls in vain before the processor is offered to others: with enough of them another program may
 * have the one that a rank needs. */
static const unsigned patience = 4096;

/* The same where ranks share cpus: the one that is waited for may be next on this one. A barrier of
 * 4 ranks on 2 cpus takes 1.6 us, 2.8 with ten times as many. Of calls of this kind only: requests
 * wait as progress.c says. */
static const unsigned crowded_patience = 2;

struct hvd_direct_run {
    struct hvd_engine *engine;
    struct hvd_run *run;
    bool leaks; /* the job has failed, and another rank may still write there */
};

static void pause_driving(struct hvd_engine *engine)
{
    hvd_float_env_leave(hvd_progress_floats(&engine->progress));
}

static void go_on_driving(struct hvd_engine *engine)
{
    hvd_float_env_enter(hvd_progress_floats(&engine->progress));
}

void hvd_direct_begin(struct hvd_engine *engine)
{
    hvd_progress_lock(engine);
    while (!hvd_shm_settle(engine->shm) && !hvd_failure_has_come(&engine->failure)) {
        hvd_loop_poll(&engine->loop);
        sched_yield();
    }
    pause_driving(engine);
}

void hvd_direct_end(struct hvd_engine *engine)
{
    go_on_driving(engine);
    hvd_progress_unlock(engine);
}

/* As hvd_run_create, by the algorithms that are forced. */
static int create_run(struct hvd_team *team, const struct hvd_batch *batch,
                      const struct hvd_algorithm_choices *forced, struct hvd_run **out,
                      struct hvd_error *err)
{
    const struct hvd_algorithm_choices own = team->choices;
    int status;

    team->choices = forced != NULL ? *forced : own;
    status = hvd_run_create(team, &batch->header, batch->entries, batch->rows, out, err);
    team->choices = own;
    return status;
}

/* Every rank has as many rows as this one. NULL without memory. */
static struct hvd_batch *create_batch(const struct hvd_engine *engine, enum hvd_kind kind,
                                      struct hvd_request *request)
{
    const struct hvd_batch_header header = {
        .kind = kind,
        .count = request->count,
        .row_count = engine->boot->size,
        .max_block = request->entries[0].proposal.max_block,
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    for (int i = 0; batch != NULL && i < request->count; i++) {
        batch->entries[i] = &request->entries[i];
    }
    for (int i = 0; batch != NULL && i < engine->boot->size; i++) {
        batch->rows[i] = request->entries[0].proposal.shape[0];
    }
    return batch;
}

int hvd_direct_run_create(struct hvd_engine *engine, enum hvd_kind kind, const char *word,
                          struct hvd_request *request,
                          const struct hvd_algorithm_choices *choices,
                          struct hvd_direct_run **out, struct hvd_error *err)
{
    struct hvd_direct_run *run = calloc(1, sizeof(*run));
    struct hvd_batch *batch = create_batch(engine, kind, request);
    int status;

    if (run == NULL || batch == NULL) {
        free(run);
        hvd_batch_destroy(batch);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", word);
    }
    run->engine = engine;
    go_on_driving(engine);
    status = create_run(hvd_teams_lane(engine->teams, HVD_LANE_SPARE), batch, choices,
                        &run->run, err);
    pause_driving(engine);
    hvd_batch_destroy(batch);
    if (status != 0) {
        free(run);
        return status;
    }
    *out = run;
    return 0;
}

static unsigned patience_of(const struct hvd_engine *engine)
{
    return engine->net != NULL ? HVD_PROGRESS_YIELD_EVERY_NET
           : hvd_oversubscription_of_ranks(&engine->oversubscription) ? crowded_patience
                                                                      : patience;
}

/* Nothing of the run has moved for a while. */
static void look_around(struct hvd_engine *engine, unsigned polls)
{
    if (engine->net != NULL) {
        hvd_net_progress(engine->net, NULL);
    }
    if (polls % look_every == 0) {
        hvd_loop_poll(&engine->loop);
    }
    if (polls % patience_of(engine) == 0) {
        sched_yield();
    }
}

/* 0, HVD_INPROGRESS when the job has failed, or the failure of the run. */
static int run_to_end(struct hvd_direct_run *run)
{
    struct hvd_engine *engine = run->engine;
    unsigned polls = 0;
    int status;

    do {
        int64_t work = stretch_bytes;
        bool moved = false;

        status = hvd_run_progress(run->run, &work, &moved);
        polls = moved ? 0 : polls + 1;
        if (status == HVD_INPROGRESS && !moved) {
            look_around(engine, polls);
        }
    } while (status == HVD_INPROGRESS && !hvd_failure_has_come(&engine->failure));
    return status;
}

int hvd_direct_run_go(struct hvd_direct_run *run, struct hvd_error *err)
{
    const struct hvd_failure *failure = &run->engine->failure;
    int status;

    go_on_driving(run->engine);
    status = run_to_end(run);
    pause_driving(run->engine);
    if (status != 0) {
        run->leaks = hvd_failure_leaks(failure);
        return hvd_failure_has_come(failure)
                   ? hvd_fail(err, HVD_ERR_PEER, "%s", hvd_failure_error(failure)->text)
                   : hvd_fail(err, status, "%s", hvd_status_name(status));
    }
    return hvd_run_again(run->run);
}

bool hvd_direct_run_destroy(struct hvd_direct_run *run)
{
    if (run == NULL) {
        return true;
    }
    if (run->leaks) {
        return false;
    }
    hvd_run_destroy(run->run);
    free(run);
    return true;
}
