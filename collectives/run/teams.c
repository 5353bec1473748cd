/* SPDX-License-Identifier: Apache-2.0 */
/* All teams of this rank, and their turns. */
#include "collectives/run/teams.h"

#include <assert.h>
#include <stdlib.h>

#include "collectives/run/run.h"
#include "collectives/transport/shm/shm_reach.h"
#include "gpu_binding/base/clock.h"

/* What a team may touch in one turn: some 100 us of work, in which others wait. */
static const int64_t turn_bytes = 512 << 10;

/* What starting a batch costs, as bytes touched. */
static const int64_t start_bytes = 4096;

/* A team and its queue. It is numbered by its index in the table, which is the same on all ranks
 * and is its channel of the net. */
struct queue {
    int index;
    bool is_member; /* else only noted, so that all ranks number alike */
    bool is_paused;
    struct hvd_shm_region *region; /* NULL when no member is on this node */
    struct hvd_team team;
    bool is_ready; /* all local ranks have opened the region, and know what they reach */
    struct hvd_batch *batches;
    struct hvd_batch **end;
    bool is_running; /* the first batch: by device_run if that is there, else by run */
    struct hvd_run *run; /* or of the last batch, for one like it; NULL: there is none */
    void *device_run; /* of the executor */
    bool
        is_active; /* in the list of those that have batches, or had some in their last turn */
    struct queue *next_active;
};

struct hvd_teams {
    struct hvd_teams_config config;
    struct queue **queues; /* [count], lanes first; NULL: free */
    int count;
    struct queue *active;
    struct queue **active_end;
    bool has_stopped;
    bool
        is_settled; /* the ranks of the node know whether they reach each other's memory */
    struct hvd_error failure;
    hvd_batch_started started; /* NULL: nobody watches */
    void *context; /* of started */
};

static void queue_destroy(const struct hvd_teams *teams, struct queue *queue)
{
    if (queue == NULL) {
        return;
    }
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

/* The local ranks of the members on this node, of [count]; returns their number. */
static int find_local_members(const struct hvd_boot *boot, const int *ranks, int count,
                              int *members)
{
    const struct hvd_layout *layout = &boot->layout;
    int found = 0;

    for (int i = 0; i < count; i++) {
        if (layout->node[ranks[i]] == layout->node[boot->rank]) {
            members[found++] = layout->local_rank[ranks[i]];
        }
    }
    return found;
}

static int open_region(const struct hvd_teams *teams, struct queue *queue,
                       const int *ranks, int count, struct hvd_error *err)
{
    int *members;
    int status = 0;
    int found;

    assert(count > 0);
    members = calloc((size_t)count, sizeof(members[0]));
    if (members == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", count);
    }
    found = find_local_members(teams->config.boot, ranks, count, members);
    if (found > 0) {
        status =
            hvd_shm_region_open(teams->config.shm, members, found, &queue->region, err);
    }
    free(members);
    return status;
}

static bool has_rank(const int *ranks, int count, int rank)
{
    for (int i = 0; i < count; i++) {
        if (ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

/* The index of a further set's team: behind the lanes, by the set's number. */
static int index_of(int set)
{
    return HVD_LANES - 1 + set;
}

static struct queue *queue_of(const struct hvd_teams *teams,
                              const struct hvd_batch *batch)
{
    int set = batch->header.set;
    int index = set == HVD_SET_GLOBAL ? (int)batch->header.lane : index_of(set);

    assert(index < teams->count && teams->queues[index] != NULL &&
           teams->queues[index]->is_member);
    return teams->queues[index];
}

static int make_room(struct hvd_teams *teams, int index)
{
    struct queue **grown;

    if (index < teams->count) {
        return 0;
    }
    grown = realloc(teams->queues, ((size_t)index + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    teams->queues = grown;
    while (teams->count <= index) {
        grown[teams->count++] = NULL;
    }
    return 0;
}

int hvd_teams_add(struct hvd_teams *teams, int set, const int *ranks, int count,
                  struct hvd_error *err)
{
    int index = set == HVD_SET_GLOBAL ? teams->count : index_of(set);
    struct queue *queue = calloc(1, sizeof(*queue));
    int status;

    if (queue == NULL || make_room(teams, index) != 0) {
        free(queue);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for another team");
    }
    queue->index = index;
    queue->end = &queue->batches;
    queue->is_member = has_rank(ranks, count, teams->config.boot->rank);
    status = open_region(teams, queue, ranks, count, err);
    if (status == 0 && queue->is_member) {
        queue->team.net = teams->config.net;
        queue->team.region = queue->region;
        queue->team.channel = (uint32_t)index;
        queue->team.geometry = teams->config.geometry;
        queue->team.algorithms = teams->config.algorithms;
        status = hvd_team_init(&queue->team, teams->config.boot, ranks, count, err);
    }
    if (status != 0) {
        queue_destroy(teams, queue);
        return status;
    }
    teams->queues[index] = queue;
    return 0;
}

static int open_lanes(struct hvd_teams *teams, struct hvd_error *err)
{
    int *ranks = calloc((size_t)teams->config.boot->size, sizeof(ranks[0]));
    int status = 0;

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the teams");
    }
    for (int i = 0; i < teams->config.boot->size; i++) {
        ranks[i] = i;
    }
    for (int i = 0; status == 0 && i < HVD_LANES; i++) {
        status =
            hvd_teams_add(teams, HVD_SET_GLOBAL, ranks, teams->config.boot->size, err);
    }
    free(ranks);
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
    status = open_lanes(teams, err);
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
    for (int i = 0; i < teams->count; i++) {
        queue_destroy(teams, teams->queues[i]);
    }
    free(teams->queues);
    free(teams);
}

/* --- teams that have something to run --- */

void hvd_teams_remove(struct hvd_teams *teams, int set)
{
    int index = index_of(set);
    struct queue *queue =
        set > HVD_SET_GLOBAL && index < teams->count ? teams->queues[index] : NULL;

    if (queue != NULL) {
        assert(queue->batches == NULL && !queue->is_active);
        queue_destroy(teams, queue);
        teams->queues[index] = NULL;
        if (teams->config.executor != NULL) {
            teams->config.executor->forget_set(teams->config.executor_context, set);
        }
    }
}

void hvd_teams_submit(struct hvd_teams *teams, struct hvd_batch *batch)
{
    struct queue *queue = queue_of(teams, batch);

    batch->next = NULL;
    if (teams->config.executor != NULL && hvd_batch_is_on_device(batch)) {
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

static struct hvd_batch *pop(struct queue *queue)
{
    struct hvd_batch *batch = queue->batches;

    queue->batches = batch->next;
    if (queue->batches == NULL) {
        queue->end = &queue->batches;
    }
    return batch;
}

/* Starts the first batch. Returns HVD_INPROGRESS while local ranks have yet to open the team or to
 * say whether they reach each other's memory: all ranks choose alike. */
static int start(struct hvd_teams *teams, struct queue *queue)
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
    batch->started_ns = hvd_clock_ns();
    if (teams->started != NULL) {
        teams->started(teams->context, batch, queue->team.layout->nodes > 1);
    }
    return 0;
}

/* Moves the first batch on. Returns 0 when it is done. */
static int advance(struct hvd_teams *teams, struct queue *queue, int64_t *work,
                   bool *moved)
{
    int status;

    if (!queue->is_running) {
        status = start(teams, queue);
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

/* Of the first batch, which is done. */
static void end_run(const struct hvd_teams *teams, struct queue *queue)
{
    if (queue->device_run != NULL) {
        teams->config.executor->destroy(queue->device_run);
        queue->device_run = NULL;
    } else {
        queue->run = hvd_run_retire(queue->run);
    }
    queue->is_running = false;
}

static int take_turn(struct hvd_teams *teams, struct queue *queue, hvd_batch_ended ended,
                     void *context, bool *moved)
{
    int64_t work = turn_bytes;

    while (queue->batches != NULL && work > 0 && !teams->has_stopped) {
        int status = advance(teams, queue, &work, moved);

        if (status != 0) {
            return status == HVD_INPROGRESS ? 0 : status;
        }
        end_run(teams, queue);
        ended(context, pop(queue));
    }
    return 0;
}

int hvd_teams_progress(struct hvd_teams *teams, hvd_batch_ended ended, void *context,
                       bool *moved)
{
    struct queue **link = &teams->active;

    if (!teams->is_settled) { /* others may wait for this rank's word */
        teams->is_settled = hvd_shm_settle(teams->config.shm);
    }
    while (*link != NULL && !teams->has_stopped) {
        struct queue *queue = *link;
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

void hvd_teams_pause(struct hvd_teams *teams, int set, bool is_paused)
{
    if (set == HVD_SET_GLOBAL) {
        teams->queues[HVD_LANE_QUICK]->is_paused = is_paused;
        teams->queues[HVD_LANE_BULK]->is_paused = is_paused;
    } else {
        teams->queues[index_of(set)]->is_paused = is_paused;
    }
}

void hvd_teams_make_void(struct hvd_teams *teams, struct hvd_batch *batch)
{
    struct queue *queue = queue_of(teams, batch);

    if (queue->batches == batch && queue->is_running && queue->device_run == NULL) {
        hvd_run_make_void(queue->run, batch->entries);
    }
}

struct hvd_team *hvd_teams_lane(struct hvd_teams *teams, enum hvd_lane lane)
{
    return &teams->queues[lane]->team;
}

bool hvd_teams_are_idle(const struct hvd_teams *teams)
{
    for (const struct queue *queue = teams->active; queue != NULL;
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
    for (struct queue *queue = teams->active; queue != NULL; queue = queue->next_active) {
        if (queue->batches != NULL) {
            if (queue->device_run != NULL) {
                teams->config.executor->forget(queue->device_run, leaks);
            } else if (queue->is_running) {
                hvd_run_forget(queue->run);
                /* It has memory of its own that others write to. */
                queue->run = leaks ? NULL : queue->run;
            }
            queue->is_running = false;
            return pop(queue);
        }
    }
    return NULL;
}
