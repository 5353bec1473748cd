/* SPDX-License-Identifier: Apache-2.0 */
/* Creates schedules: chooses an algorithm, sets it up once, and emits its steps tick by
 * tick. */
#include "collectives/schedule/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule_state.h"
#include "gpu_binding/base/error.h"

static int check_place(const struct hvd_schedule_query *query, struct hvd_error *err)
{
    const struct hvd_geometry *geometry = &query->geometry;

    if ((unsigned)query->collective >= HVD_COLLECTIVES) {
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
            "%d slots of %zu bytes and receive slots of %zu bytes: expected at least 2 "
            "slots, multiples of 64 bytes, and receive slots that are no smaller",
            geometry->slots, geometry->slot_bytes, geometry->recv_bytes);
    }
    return 0;
}

static int check_sum(const struct hvd_schedule_query *query, struct hvd_error *err)
{
    bool is_part_inside = query->part_begin >= 0 && query->part_count >= 0 &&
                          query->part_begin <= query->count &&
                          query->part_count <= query->count - query->part_begin;

    if (query->element_bytes == 0 || query->partial_bytes < query->element_bytes) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "elements of %zu bytes and partials of %zu: expected at least 1 byte, and "
            "partials that are no smaller",
            query->element_bytes, query->partial_bytes);
    }
    if (query->count < 0 || query->count > INT64_MAX / (int64_t)query->element_bytes) {
        return hvd_fail(err, HVD_ERR_ARG, "cannot reduce %lld elements of %zu bytes",
                        (long long)query->count, query->element_bytes);
    }
    if (query->collective == HVD_COLL_REDUCESCATTER && !is_part_inside) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "a part of %lld elements from %lld on does not lie within %lld",
                        (long long)query->part_count, (long long)query->part_begin,
                        (long long)query->count);
    }
    return 0;
}

/* Checks that `bounds` are those of `count` consecutive blocks from 0 on, and finds the
 * largest block. */
static int check_blocks(const int64_t *bounds, int count, int64_t *most,
                        struct hvd_error *err)
{
    int64_t largest = 0;

    for (int rank = 0; rank < count; rank++) {
        int64_t bytes = bounds[rank + 1] - bounds[rank];

        if (bounds[0] != 0 || bounds[rank + 1] < bounds[rank]) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "the block of rank %d is bytes %lld to %lld: expected blocks that "
                "start at 0 and follow each other",
                rank, (long long)bounds[rank], (long long)bounds[rank + 1]);
        }
        largest = bytes > largest ? bytes : largest;
    }
    *most = largest;
    return 0;
}

/* Checks the blocks of an allgather or alltoall; for an allgather it also fills in
 * max_block. */
static int check_moves(struct hvd_schedule_query *query, struct hvd_error *err)
{
    int64_t in = 0, out = 0;
    int status = check_blocks(query->blocks, query->layout->size, &in, err);

    if (status != 0 || query->collective == HVD_COLL_ALLGATHER) {
        query->max_block = in;
        return status;
    }
    status = check_blocks(query->send, query->layout->size, &out, err);
    if (status == 0 && (in > query->max_block || out > query->max_block)) {
        status = hvd_fail(err, HVD_ERR_ARG,
                          "a block has %lld bytes, but at most %lld were announced",
                          (long long)(in > out ? in : out), (long long)query->max_block);
    }
    return status;
}

static int check_query(struct hvd_schedule_query *query, struct hvd_error *err)
{
    int status = check_place(query, err);

    if (status != 0) {
        return status;
    }
    switch (query->collective) {
    case HVD_COLL_ALLREDUCE:
    case HVD_COLL_REDUCESCATTER:
        return check_sum(query, err);
    case HVD_COLL_BROADCAST:
        return query->root >= 0 && query->root < query->layout->size && query->bytes >= 0
                   ? 0
                   : hvd_fail(err, HVD_ERR_ARG,
                              "cannot broadcast %lld bytes from rank %d of %d",
                              (long long)query->bytes, query->root, query->layout->size);
    default:
        return check_moves(query, err);
    }
}

const struct hvd_geometry hvd_usual_geometry = {
    .slots = 4,
    .slot_bytes = 256 << 10,
    .recv_bytes = 512 << 10,
    .has_single_copy = true,
};

/* Returns the size by which the algorithm is chosen, as hvd-bench counts it. */
static int64_t bytes_of(const struct hvd_schedule_query *query)
{
    switch (query->collective) {
    case HVD_COLL_BROADCAST:
        return query->bytes;
    case HVD_COLL_ALLGATHER:
        return query->blocks[query->layout->size];
    case HVD_COLL_ALLTOALL:
        return query->max_block * query->layout->size;
    default:
        return query->count * (int64_t)query->element_bytes;
    }
}

static void choose_algorithm(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    const struct hvd_algorithm_choices *choices = query->choices;
    struct hvd_algorithm_choices builtin;

    if (choices == NULL) {
        hvd_algorithm_choices_builtin(hvd_job_shape_of(query->layout), &builtin);
        choices = &builtin;
    }
    schedule->choice = *hvd_algorithm_for(choices, query->collective, bytes_of(query));
    schedule->grid_levels = choices->grid_levels;
    schedule->query.choices = NULL;
}

static enum hvd_algorithm sum_between(const struct hvd_schedule *schedule)
{
    const struct hvd_layout *layout = schedule->query.layout;
    enum hvd_algorithm choice = schedule->choice.algorithm;

    if (choice == HVD_ALGORITHM_PAIR && layout->size == 2) {
        return HVD_ALGORITHM_PAIR;
    }
    if (hvd_multilevel_fits(schedule)) {
        return HVD_ALGORITHM_MULTILEVEL;
    }
    return choice == HVD_ALGORITHM_DIRECT && layout->nodes > 2 ? HVD_ALGORITHM_DIRECT
                                                               : HVD_ALGORITHM_LINEAR;
}

static enum hvd_algorithm sum_on_node(const struct hvd_schedule *schedule)
{
    enum hvd_algorithm choice = schedule->choice.algorithm;
    bool is_one_shot =
        schedule->local_size <= 2 || schedule->query.collective == HVD_COLL_REDUCESCATTER;

    switch (choice) {
    case HVD_ALGORITHM_LL:
        return hvd_ll_fits_sum(schedule) ? choice : HVD_ALGORITHM_ONE_SHOT;
    case HVD_ALGORITHM_TWO_SHOT:
        return choice;
    case HVD_ALGORITHM_CMA_REDUCE:
        return hvd_cma_reduce_fits(schedule) ? choice
               : is_one_shot                 ? HVD_ALGORITHM_ONE_SHOT
                                             : HVD_ALGORITHM_TWO_SHOT;
    default:
        return HVD_ALGORITHM_ONE_SHOT;
    }
}

/* Whether to access memory of `bytes` in place, by cross-memory attach. */
static bool is_single_copy(const struct hvd_schedule *schedule, int64_t bytes)
{
    enum hvd_algorithm choice = schedule->choice.algorithm;

    return (choice == HVD_ALGORITHM_CMA_READ || choice == HVD_ALGORITHM_CMA_WRITE) &&
           hvd_cma_fits(schedule, bytes);
}

static enum hvd_algorithm broadcast_algorithm(const struct hvd_schedule *schedule)
{
    if (is_single_copy(schedule, schedule->query.bytes)) {
        return schedule->choice.algorithm;
    }
    return schedule->query.layout->nodes == 1 ? HVD_ALGORITHM_ROLLING
                                              : HVD_ALGORITHM_TREE;
}

static enum hvd_algorithm blocks_algorithm(const struct hvd_schedule *schedule)
{
    if (is_single_copy(schedule, schedule->query.max_block)) {
        return schedule->choice.algorithm;
    }
    if (hvd_cico_fits(schedule)) {
        return hvd_ll_fits_blocks(schedule) ? HVD_ALGORITHM_LL : HVD_ALGORITHM_CICO;
    }
    return schedule->query.collective == HVD_COLL_ALLGATHER ? HVD_ALGORITHM_RING
                                                            : HVD_ALGORITHM_PAIRWISE;
}

/* Returns the chosen algorithm, or its replacement where it does not fit. */
static enum hvd_algorithm algorithm_of(const struct hvd_schedule *schedule)
{
    switch (schedule->query.collective) {
    case HVD_COLL_ALLREDUCE:
    case HVD_COLL_REDUCESCATTER:
        return schedule->query.layout->nodes > 1 ? sum_between(schedule)
                                                 : sum_on_node(schedule);
    case HVD_COLL_BROADCAST:
        return broadcast_algorithm(schedule);
    default:
        return blocks_algorithm(schedule);
    }
}

static int set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    static hvd_algorithm_set_up *const set_ups[HVD_ALGORITHMS] = {
        [HVD_ALGORITHM_LL] = hvd_ll_set_up,
        [HVD_ALGORITHM_ONE_SHOT] = hvd_one_shot_set_up,
        [HVD_ALGORITHM_TWO_SHOT] = hvd_two_shot_set_up,
        [HVD_ALGORITHM_CMA_REDUCE] = hvd_cma_reduce_set_up,
        [HVD_ALGORITHM_PAIR] = hvd_pair_set_up,
        [HVD_ALGORITHM_LINEAR] = hvd_linear_set_up,
        [HVD_ALGORITHM_DIRECT] = hvd_direct_set_up,
        [HVD_ALGORITHM_MULTILEVEL] = hvd_multilevel_set_up,
        [HVD_ALGORITHM_CICO] = hvd_cico_set_up,
        [HVD_ALGORITHM_ROLLING] = hvd_rolling_set_up,
        [HVD_ALGORITHM_CMA_READ] = hvd_cma_read_set_up,
        [HVD_ALGORITHM_CMA_WRITE] = hvd_cma_write_set_up,
        [HVD_ALGORITHM_TREE] = hvd_tree_set_up,
        [HVD_ALGORITHM_RING] = hvd_ring_set_up,
        [HVD_ALGORITHM_PAIRWISE] = hvd_pairwise_set_up,
    };
    enum hvd_algorithm algorithm = algorithm_of(schedule);
    int status = set_ups[algorithm](schedule, err);

    schedule->facts.name = hvd_algorithm_name(algorithm);
    return status;
}

static int allocate_steps(struct hvd_schedule *schedule, struct hvd_error *err)
{
    size_t slots = (size_t)schedule->query.geometry.slots;

    schedule->marks = calloc(2 * slots, sizeof(*schedule->marks));
    schedule->steps = calloc((size_t)schedule->step_capacity, sizeof(*schedule->steps));
    if (schedule->marks == NULL || schedule->steps == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM,
                        "no memory for a schedule with %d steps per tick",
                        schedule->step_capacity);
    }
    schedule->final_marks = schedule->marks + slots;
    return 0;
}

int hvd_schedule_create(const struct hvd_schedule_query *query, struct hvd_schedule **out,
                        struct hvd_error *err)
{
    struct hvd_schedule *schedule = calloc(1, sizeof(*schedule));
    int status;

    if (schedule == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a schedule");
    }
    schedule->query = *query;
    status = check_query(&schedule->query, err);
    if (status == 0) {
        schedule->node = query->layout->node[query->rank];
        schedule->local_rank = query->layout->local_rank[query->rank];
        schedule->local_size = hvd_layout_local_size(query->layout, schedule->node);
        choose_algorithm(schedule);
        status = set_up(schedule, err);
    }
    if (status == 0) {
        status = allocate_steps(schedule, err);
    }
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

int hvd_schedule_tick(struct hvd_schedule *schedule, int64_t tick,
                      const struct hvd_step **steps)
{
    if (tick == 0 && schedule->facts.ticks == 1 && schedule->next_tick == 1) {
        *steps = schedule->steps;
        return schedule->step_count;
    }
    if (tick == 0) {
        schedule->next_tick = 0;
        schedule->signalled = 0;
        schedule->posted = (struct hvd_schedule_mark){0};
        memset(schedule->marks, 0,
               2 * (size_t)schedule->query.geometry.slots * sizeof(*schedule->marks));
    }
    assert(tick == schedule->next_tick && tick < schedule->facts.ticks);
    schedule->next_tick++;
    schedule->step_count = 0;
    schedule->emit(schedule, tick);
    *steps = schedule->steps;
    return schedule->step_count;
}

const struct hvd_schedule_facts *hvd_schedule_facts(const struct hvd_schedule *schedule)
{
    return &schedule->facts;
}
