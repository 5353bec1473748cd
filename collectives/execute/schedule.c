/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a schedule: chosen by collective, planned once, emitted tick by tick. */
#include "collectives/execute/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/schedule_internal.h"

typedef int planner(struct hvd_schedule *schedule, struct hvd_error *err);

static planner *const planners[] = {
    [HVD_COLL_ALLREDUCE] = hvd_schedule_plan_allreduce,
    [HVD_COLL_REDUCESCATTER] = hvd_schedule_plan_allreduce,
    [HVD_COLL_ALLGATHER] = hvd_schedule_plan_allgather,
    [HVD_COLL_BROADCAST] = hvd_schedule_plan_broadcast,
    [HVD_COLL_ALLTOALL] = hvd_schedule_plan_alltoall,
};

static int check(const struct hvd_schedule_query *query, struct hvd_error *err)
{
    const struct hvd_geometry *geometry = &query->geometry;

    if ((unsigned)query->collective >= sizeof(planners) / sizeof(planners[0])) {
        return hvd_fail(err, HVD_ERR_ARG, "there is no collective number %d",
                        (int)query->collective);
    }
    if (query->rank < 0 || query->rank >= query->layout->size) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "rank %d is not among the %d ranks that take part", query->rank,
                        query->layout->size);
    }
    if (geometry->slots < 2 || geometry->slot_bytes == 0 ||
        geometry->slot_bytes % 64 != 0 || geometry->recv_bytes % 64 != 0 ||
        geometry->recv_bytes < geometry->slot_bytes) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%d slots of %zu bytes and %zu bytes for what is received: expected at "
            "least 2 slots, multiples of 64 bytes, and no less for receiving",
            geometry->slots, geometry->slot_bytes, geometry->recv_bytes);
    }
    return 0;
}

const struct hvd_geometry hvd_usual_geometry = {
    .slots = 4,
    .slot_bytes = 256 * 1024,
    .recv_bytes = 512 * 1024,
    .has_single_copy = true,
    .shared_bytes = 16 * 1024,
};

/* As hvd-bench counts them; a query that the planner refuses may have any. */
static int64_t bytes_of(const struct hvd_schedule_query *query)
{
    int64_t most =
        INT64_MAX / (query->element_bytes > 0 ? (int64_t)query->element_bytes : 1);

    switch (query->collective) {
    case HVD_COLL_BROADCAST:
        return query->bytes;
    case HVD_COLL_ALLGATHER:
        return query->blocks[query->layout->size];
    case HVD_COLL_ALLTOALL:
        return query->max_block * query->layout->size;
    default:
        return (query->count < most ? query->count : most) *
               (int64_t)query->element_bytes;
    }
}

static void choose(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    const struct hvd_choices *choices = query->choices;
    struct hvd_choices usual;

    if (choices == NULL) {
        hvd_choices_usual(hvd_shape_of(query->layout), &usual);
        choices = &usual;
    }
    schedule->choice = *hvd_choice_find(choices, query->collective, bytes_of(query));
    schedule->grid_levels = choices->grid_levels;
    schedule->query.choices = NULL;
}

static int plan(struct hvd_schedule *schedule, struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    size_t slots = (size_t)query->geometry.slots;
    int status;

    schedule->node = query->layout->node[query->rank];
    schedule->local_rank = query->layout->local_rank[query->rank];
    schedule->local_size = hvd_layout_local_size(query->layout, schedule->node);
    choose(schedule);
    status = planners[query->collective](schedule, err);
    if (status != 0) {
        return status;
    }
    schedule->marks = calloc(2 * slots, sizeof(*schedule->marks));
    schedule->steps = calloc((size_t)schedule->step_capacity, sizeof(*schedule->steps));
    if (schedule->marks == NULL || schedule->steps == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM,
                        "no memory for a schedule with %d steps a tick",
                        schedule->step_capacity);
    }
    schedule->final_marks = schedule->marks + slots;
    return 0;
}

int hvd_schedule_create(const struct hvd_schedule_query *query, struct hvd_schedule **out,
                        struct hvd_error *err)
{
    struct hvd_schedule *schedule;
    int status = check(query, err);

    if (status != 0) {
        return status;
    }
    schedule = calloc(1, sizeof(*schedule));
    if (schedule == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a schedule");
    }
    schedule->query = *query;
    status = plan(schedule, err);
    if (status != 0) {
        hvd_schedule_destroy(schedule);
        return status;
    }
    *out = schedule;
    return 0;
}

void hvd_schedule_destroy(struct hvd_schedule *schedule)
{
    if (schedule != NULL) {
        free(schedule->marks);
        free(schedule->steps);
        free(schedule);
    }
}

int64_t hvd_schedule_ticks(const struct hvd_schedule *schedule)
{
    return schedule->ticks;
}

int hvd_schedule_tick(struct hvd_schedule *schedule, int64_t tick,
                      const struct hvd_step **steps)
{
    if (tick == 0 && schedule->ticks == 1 && schedule->next_tick == 1) {
        *steps = schedule->steps; /* still there */
        return schedule->step_count;
    }
    if (tick == 0) {
        schedule->next_tick = 0;
        schedule->signalled = 0;
        schedule->posted = (struct hvd_schedule_mark){0};
        memset(schedule->marks, 0,
               2 * (size_t)schedule->query.geometry.slots * sizeof(*schedule->marks));
    }
    assert(tick == schedule->next_tick && tick < schedule->ticks);
    schedule->next_tick++;
    schedule->step_count = 0;
    schedule->emit(schedule, tick);
    *steps = schedule->steps;
    return schedule->step_count;
}

uint64_t hvd_schedule_signals(const struct hvd_schedule *schedule)
{
    return schedule->signals;
}

int64_t hvd_schedule_turns(const struct hvd_schedule *schedule)
{
    return schedule->turns;
}

bool hvd_schedule_is_rolling(const struct hvd_schedule *schedule)
{
    return schedule->is_rolling;
}

bool hvd_schedule_is_offered(const struct hvd_schedule *schedule)
{
    return schedule->is_offered;
}

const char *hvd_schedule_name(const struct hvd_schedule *schedule)
{
    return schedule->name;
}
