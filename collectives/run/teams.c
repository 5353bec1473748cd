/* SPDX-License-Identifier: Apache-2.0 */
/* All teams of this rank, and their turns. */
#include "collectives/run/teams.h"

#include <assert.h>
#include <stdlib.h>

#include "collectives/run/run.h"
#include "collectives/set/set.h"
#include "collectives/transport/shm/shm_reach.h"
#include "gpu_binding/base/clock.h"

/* Bytes that a team may touch in one turn: about 100 us of work, during which other teams
 * wait. */
static const int64_t turn_bytes = 512 << 10;

/* The cost of starting a batch, as bytes touched. */
static const int64_t start_bytes = 4096;

/* A queue of batches, and its team. */
struct hvd_queue {
    struct hvd_queue *next; /* in the list of all queues */
    bool is_paused;
    struct hvd_shm_region *region; /* NULL if no member is on this node */
    struct hvd_team team;
    /* all local ranks have opened the region, and know whether they can reach each
     * other's memory */
    bool is_ready;
    struct hvd_batch *batches;
    struct hvd_batch **end;
    /* the first batch is running, in device_run, or in `run` if device_run is NULL */
    bool is_running;
    /* the current run, or the last one, kept for a similar batch; NULL: none */
    struct hvd_run *run;
    void *device_run; /* run of the executor */
    /* is in the list of active queues: it has batches, or had some in its last turn */
    bool is_active;
    struct hvd_queue *next_active;
};

struct hvd_teams {
    struct hvd_teams_config config;
    struct hvd_queue *queues;
    struct hvd_queue *active;
    struct hvd_queue **active_end;
    bool has_stopped;
    /* the ranks of the node know whether they can reach each other's memory */
    bool is_settled;
    struct hvd_error failure;
    hvd_batch_started started; /* NULL: not called */
    void *context; /* first argument of `started` */
};

static void queue_destroy(const struct hvd_teams *teams, struct hvd_queue *queue)
{
    hvd_run_destroy(queue->run);
    if (queue->device_run != NULL) {
        teams->config.executor->destroy(queue->device_run);
    }
    while (queue->batches != NULL) {
        struct hvd_batch *batch = queue->batches;

        queue->batches = batch->next;
        hvd_batch_destroy(batch);
    }
    hvd_team_finish(&queue->team);
    hvd_shm_region_close(queue->region);
    free(queue);
}

/* Finds the local ranks of the set's members on this node; returns their number. */
static int find_local_members(const struct hvd_boot *boot, const struct hvd_set *set,
                              int *members)
{
    const struct hvd_layout *layout = &boot->layout;
    int found = 0;

    for (int i = 0; i < set->count; i++) {
        if (layout->node[set->ranks[i]] == layout->node[boot->rank]) {
            members[found++] = layout->local_rank[set->ranks[i]];
        }
    }
    return found;
}

static int open_region(const struct hvd_teams *teams, struct hvd_queue *queue,
                       const struct hvd_set *set, struct hvd_error *err)
{
    int *members = calloc((size_t)set->count, sizeof(members[0]));
    int status = 0;
    int found;

    if (members == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks",
                        set->count);
    }
    found = find_local_members(teams->config.boot, set, members);
    if (found > 0) {
        status =
            hvd_shm_region_open(teams->config.shm, members, found, &queue->region, err);
    }
    free(members);
    return status;
}

/* Returns the channel of a queue, the same on all ranks: first the queues of the global
 * set, then the other sets by their numbers. */
static uint32_t channel_of(const struct hvd_set *set, int priority)
{
    return (uint32_t)(set->id + HVD_PRIORITIES - set->priorities + priority);
}

static int open_priority(struct hvd_teams *teams, struct hvd_set *set, int priority,
                         struct hvd_error *err)
{
    struct hvd_queue *queue = calloc(1, sizeof(*queue));
    int status;

    if (queue == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for another team");
    }
    queue->end = &queue->batches;
    queue->next = teams->queues;
    teams->queues = queue;
    set->queues[priority] = queue;
    status = open_region(teams, queue, set, err);
    if (status == 0 && set->is_member) {
        queue->team.net = teams->config.net;
        queue->team.region = queue->region;
        queue->team.channel = channel_of(set, priority);
        queue->team.geometry = teams->config.geometry;
        queue->team.algorithms = teams->config.algorithms;
        status =
            hvd_team_init(&queue->team, teams->config.boot, set->ranks, set->count, err);
    }
    return status;
}

int hvd_teams_add(struct hvd_teams *teams, struct hvd_set *set, struct hvd_error *err)
{
    int status = 0;

    for (int priority = 0; priority < set->priorities && status == 0; priority++) {
        status = open_priority(teams, set, priority, err);
    }
    return status;
}

int hvd_teams_create(const struct hvd_teams_config *config, struct hvd_teams **out,
                     struct hvd_error *err)
{
    struct hvd_teams *teams = calloc(1, sizeof(*teams));
    int status;

    if (teams == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the teams");
    }
    teams->config = *config;
    teams->active_end = &teams->active;
    status = hvd_teams_add(teams, config->global, err);
    if (status != 0) {
        hvd_teams_destroy(teams);
        return status;
    }
    *out = teams;
    return 0;
}

void hvd_teams_destroy(struct hvd_teams *teams)
{
    if (teams == NULL) {
        return;
    }
    while (teams->queues != NULL) {
        struct hvd_queue *queue = teams->queues;

        teams->queues = queue->next;
        queue_destroy(teams, queue);
    }
    free(teams);
}

/* --- adding and removing batches and queues --- */

static void remove_queue(struct hvd_teams *teams, struct hvd_queue *queue)
{
    struct hvd_queue **link = &teams->queues;

    assert(queue->batches == NULL && !queue->is_active);
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    queue_destroy(teams, queue);
}

void hvd_teams_remove(struct hvd_teams *teams, struct hvd_set *set)
{
    for (int priority = 0; priority < set->priorities; priority++) {
        remove_queue(teams, set->queues[priority]);
        set->queues[priority] = NULL;
    }
    if (teams->config.executor != NULL) {
        teams->config.executor->forget_set(teams->config.executor_context, set);
    }
}

/* Returns the queue of a batch. A set with one queue has only batches of priority 0. */
static struct hvd_queue *queue_of(const struct hvd_batch *batch)
{
    return batch->set->queues[batch->header.priority];
}

void hvd_teams_submit(struct hvd_teams *teams, struct hvd_batch *batch)
{
    struct hvd_queue *queue = queue_of(batch);
    /* on all ranks or on none */
    const bool is_on_device =
        batch->header.count > 0 && batch->entries[0]->descriptor.device != HVD_DEVICE_CPU;

    batch->next = NULL;
    if (teams->config.executor != NULL && is_on_device) {
        batch->device_number =
            teams->config.executor->number(teams->config.executor_context);
    }
    *queue->end = batch;
    queue->end = &batch->next;
    if (!queue->is_active) {
        queue->is_active = true;
        queue->next_active = NULL;
        *teams->active_end = queue;
        teams->active_end = &queue->next_active;
    }
}

static struct hvd_batch *pop_batch(struct hvd_queue *queue)
{
    struct hvd_batch *batch = queue->batches;

    queue->batches = batch->next;
    if (queue->batches == NULL) {
        queue->end = &queue->batches;
    }
    return batch;
}

/* Starts the first batch. Returns HVD_INPROGRESS until all local ranks have opened the
 * team's shared memory and know whether they can reach each other's memory. Otherwise
 * ranks could choose different algorithms. */
static int start_batch(struct hvd_teams *teams, struct hvd_queue *queue)
{
    struct hvd_batch *batch = queue->batches;
    int status = 0;

    queue->is_ready =
        queue->is_ready || (teams->is_settled && hvd_shm_region_is_ready(queue->region));
    if (!queue->is_ready) {
        return HVD_INPROGRESS;
    }
    if (batch->device_number != 0) {
        status =
            teams->config.executor->create(teams->config.executor_context, &queue->team,
                                           batch, &queue->device_run, &teams->failure);
    } else if (queue->run != NULL) {
        queue->run = hvd_run_restart(queue->run, &batch->header, batch->entries);
    }
    if (batch->device_number == 0 && queue->run == NULL) {
        status = hvd_run_create(&queue->team, &batch->header, batch->entries, batch->rows,
                                &queue->run, &teams->failure);
    }
    if (status != 0) {
        return status;
    }
    queue->is_running = true;
    if (teams->started != NULL) {
        batch->started_ns = hvd_clock_ns();
        teams->started(teams->context, batch, queue->team.layout->nodes > 1);
    }
    return 0;
}

/* Advances the first batch. Returns 0 when it is done. */
static int advance_batch(struct hvd_teams *teams, struct hvd_queue *queue, int64_t *work,
                         bool *moved)
{
    int status;

    if (!queue->is_running) {
        status = start_batch(teams, queue);
        if (status != 0) {
            return status;
        }
        *work -= start_bytes;
        *moved = true;
    }
    if (queue->device_run != NULL) {
        return teams->config.executor->progress(queue->device_run, work, moved,
                                                &teams->failure);
    }
    status = hvd_run_progress(queue->run, work, moved);
    if (status < 0) {
        hvd_fail(&teams->failure, status, "%s", hvd_status_name(status));
    }
    return status;
}

/* Ends the run of the first batch, which is done. */
static void end_run(const struct hvd_teams *teams, struct hvd_queue *queue)
{
    if (queue->device_run != NULL) {
        teams->config.executor->destroy(queue->device_run);
        queue->device_run = NULL;
    } else {
        queue->run = hvd_run_retire(queue->run);
    }
    queue->is_running = false;
}

static int take_turn(struct hvd_teams *teams, struct hvd_queue *queue,
                     hvd_batch_ended ended, void *context, bool *moved)
{
    int64_t work = turn_bytes;

    while (queue->batches != NULL && work > 0 && !teams->has_stopped) {
        int status = advance_batch(teams, queue, &work, moved);

        if (status != 0) {
            return status == HVD_INPROGRESS ? 0 : status;
        }
        end_run(teams, queue);
        ended(context, pop_batch(queue));
    }
    return 0;
}

int hvd_teams_progress(struct hvd_teams *teams, hvd_batch_ended ended, void *context,
                       bool *moved)
{
    struct hvd_queue **link = &teams->active;

    if (!teams->is_settled) { /* other ranks may be waiting for this rank's report */
        teams->is_settled = hvd_shm_settle(teams->config.shm);
    }
    while (*link != NULL && !teams->has_stopped) {
        struct hvd_queue *queue = *link;
        int status =
            queue->is_paused ? 0 : take_turn(teams, queue, ended, context, moved);

        if (status != 0) {
            teams->has_stopped = true;
            return status;
        }
        if (queue->batches != NULL) {
            link = &queue->next_active;
            continue;
        }
        queue->is_active = false;
        *link = queue->next_active;
        if (*link == NULL) {
            teams->active_end = link;
        }
    }
    return teams->active != NULL && !teams->has_stopped ? HVD_INPROGRESS : 0;
}

void hvd_teams_watch(struct hvd_teams *teams, hvd_batch_started started, void *context)
{
    teams->started = started;
    teams->context = context;
}

const struct hvd_error *hvd_teams_failure(const struct hvd_teams *teams)
{
    return &teams->failure;
}

void hvd_teams_pause(const struct hvd_set *set, bool is_paused)
{
    for (int priority = 0; priority < set->priorities; priority++) {
        set->queues[priority]->is_paused = is_paused && priority != HVD_PRIORITY_SPARE;
    }
}

void hvd_teams_cancel(const struct hvd_batch *batch)
{
    struct hvd_queue *queue = queue_of(batch);

    if (queue->batches == batch && queue->is_running && queue->device_run == NULL) {
        hvd_run_cancel(queue->run, batch->entries);
    }
}

struct hvd_team *hvd_teams_priority(struct hvd_teams *teams, enum hvd_priority priority)
{
    return &teams->config.global->queues[priority]->team;
}

bool hvd_teams_are_idle(const struct hvd_teams *teams)
{
    for (const struct hvd_queue *queue = teams->active; queue != NULL;
         queue = queue->next_active) {
        if (queue->batches != NULL) {
            return false;
        }
    }
    return true;
}

struct hvd_batch *hvd_teams_take_batch(struct hvd_teams *teams, bool leaks)
{
    teams->has_stopped = true;
    for (struct hvd_queue *queue = teams->active; queue != NULL;
         queue = queue->next_active) {
        if (queue->batches != NULL) {
            if (queue->device_run != NULL) {
                teams->config.executor->forget(queue->device_run, leaks);
            } else if (queue->is_running) {
                hvd_run_forget(queue->run);
                /* The run owns memory that others may still write to. */
                queue->run = leaks ? NULL : queue->run;
            }
            queue->is_running = false;
            return pop_batch(queue);
        }
    }
    return NULL;
}
