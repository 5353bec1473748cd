/* SPDX-License-Identifier: Apache-2.0 */
/* The teams, which run batches, as a source. */
#include "collectives/core/batches.h"

#include "collectives/request/batch.h"
#include "collectives/core/job_state.h"
#include "collectives/core/network.h"
#include "collectives/run/teams.h"
#include "collectives/gpu/gpu_run.h"
#include "collectives/gpu/gpu_runtime.h"
#include "pmix_boot/boot.h"

/* Gives each team a turn. */
static unsigned progress_teams(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    bool moved = false;
    int status;

    (void)now_ns;
    if (job->net != NULL && hvd_network_waits_for_word(job)) {
        /* when a peer is lost, batches would fail with a less helpful reason: wait */
        return 0;
    }
    status = hvd_teams_progress(job->teams, hvd_negotiation_finish, job, &moved);
    if (status == HVD_ERR_PEER && hvd_network_has_lost_peer(job)) {
        return HVD_SOURCE_MOVED;
    }
    if (status < 0) {
        hvd_failure_end_job(job, job->boot->rank, status,
                            hvd_teams_failure(job->teams)->text);
    }
    return (moved || status < 0 ? HVD_SOURCE_MOVED : 0) |
           (status == HVD_INPROGRESS ? HVD_SOURCE_WORKS : 0);
}

/* Lets signals of local ranks wake this rank from now on, and handles those that came
 * before. */
static bool settle_teams(void *self, const struct hvd_timed_wait *wait)
{
    return (progress_teams(self, wait->now_ns) & HVD_SOURCE_MOVED) == 0;
}

static bool have_drained(const void *self)
{
    const struct hvd_job *job = self;

    return hvd_teams_are_idle(job->teams);
}

/* Destroys the batches. Their runs stay until the network is closed, because it may still
 * use their messages. */
static void drop_batches(void *self, int status, const char *text)
{
    struct hvd_job *job = self;
    const bool leaks = hvd_failure_leaks(&job->failure);
    struct hvd_batch *batch;

    (void)status; /* entries end with the agreement, which knows them all */
    (void)text;
    while (job->teams != NULL &&
           (batch = hvd_teams_take_batch(job->teams, leaks)) != NULL) {
        for (int64_t i = 0; leaks && i < batch->header.count; i++) {
            batch->entries[i]->result = NULL;
        }
        hvd_batch_destroy(batch);
    }
}

static void close_teams(void *self)
{
    struct hvd_job *job = self;

    hvd_teams_destroy(job->teams);
    job->teams = NULL;
}

static const struct hvd_source teams_source = {
    .name = "teams",
    .progress = progress_teams,
    .settle = settle_teams,
    .has_drained = have_drained,
    .fail = drop_batches,
    .close = close_teams,
};

int hvd_batches_open(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_teams_config config = {.boot = job->boot,
                                            .global = hvd_sets_global(&job->sets),
                                            .shm = job->shm,
                                            .net = job->net,
                                            .geometry = job->geometry,
                                            .algorithms =
                                                hvd_algorithms_table(&job->algorithms),
                                            .executor = &hvd_gpu_executor,
                                            .executor_context = job->gpu};
    int status = hvd_teams_create(&config, &job->teams, err);

    if (status == 0) {
        hvd_recording_watch(job);
        hvd_loop_add(&job->loop, &teams_source, job, NULL);
    }
    return status;
}
