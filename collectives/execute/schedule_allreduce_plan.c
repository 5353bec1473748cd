/* SPDX-License-Identifier: Apache-2.0 */
/* Planning an allreduce or reducescatter: which algorithm, in chunks of how many elements. */
#include "collectives/execute/schedule_allreduce.h"
#include "gpu_binding/base/env.h"

static int check(const struct hvd_schedule_query *query, struct hvd_error *err)
{
    bool is_part_inside = query->part_begin >= 0 && query->part_count >= 0 &&
                          query->part_begin <= query->count &&
                          query->part_count <= query->count - query->part_begin;

    if (query->element_bytes == 0 || query->partial_bytes < query->element_bytes) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "elements of %zu bytes and partials of %zu: expected no less than the "
            "element",
            query->element_bytes, query->partial_bytes);
    }
    if (query->count < 0 || query->count > INT64_MAX / (int64_t)query->element_bytes) {
        return hvd_fail(err, HVD_ERR_ARG, "%lld elements of %zu bytes to reduce",
                        (long long)query->count, query->element_bytes);
    }
    if (query->collective == HVD_COLL_REDUCESCATTER && !is_part_inside) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%lld elements from %lld on are not part of %lld",
                        (long long)query->part_count, (long long)query->part_begin,
                        (long long)query->count);
    }
    return 0;
}

static void choose_on_node(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;
    int64_t line = HVD_LINE_BYTES / (int64_t)query->element_bytes;
    enum hvd_algorithm algorithm = hvd_schedule_through_slots(schedule);

    plan->is_full = algorithm != HVD_ALGORITHM_LANES;
    plan->is_line = algorithm == HVD_ALGORITHM_LINE && query->count <= line;
    schedule->choice.chunk_bytes = plan->is_line ? 0 : schedule->choice.chunk_bytes;
    plan->get_lag = plan->is_full ? 0 : 1;
    schedule->name = plan->is_line ? "line" : plan->is_full ? "full" : "lanes";
}

static void choose_between_nodes(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;
    int nodes = query->layout->nodes;

    plan->lanes = schedule->choice.has_one_lane ? 1 : plan->lanes;
    hvd_grid_make(nodes, schedule->grid_levels, &plan->grid);
    plan->seat = hvd_grid_seat(&plan->grid, schedule->node);
    plan->is_grid = plan->grid.levels > 1;
    plan->is_direct = nodes > 2 && schedule->choice.algorithm == HVD_ALGORITHM_DIRECT;
    plan->finals_lag = query->geometry.slots > 2 ? 2 : 1;
    plan->get_lag = plan->is_direct || plan->is_grid ? plan->finals_lag + 1 : 2;
    plan->is_pairwise = nodes == 2 && plan->get_lag < query->geometry.slots;
    schedule->name = plan->is_grid     ? plan->is_direct ? "grid" : "grid exchange"
                     : plan->is_direct ? "direct"
                                       : "exchange";
}

/* Whether chunks of so many elements fit all places. */
static bool fits(const struct hvd_schedule *schedule, int64_t elements)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int lanes = schedule->plan.allreduce.lanes;
    size_t each = (size_t)schedule->plan.allreduce.carried;
    int64_t lane = hvd_part_most(elements, lanes);

    if ((size_t)elements > query->geometry.slot_bytes / query->element_bytes) {
        return false;
    }
    return query->layout->nodes == 1 ||
           (each * hvd_allreduce_send_bytes(schedule, lane) <=
                query->geometry.slot_bytes &&
            each * hvd_allreduce_recv_bytes(schedule, lane) <=
                query->geometry.recv_bytes);
}

/* The most elements that fit, at least 0. */
static int64_t most_that_fit(const struct hvd_schedule *schedule)
{
    int64_t low = 0;
    int64_t high = (int64_t)schedule->query.geometry.slot_bytes;

    while (low < high) {
        int64_t middle = high - (high - low) / 2;

        if (fits(schedule, middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The same, shortened so that lanes are whole messages of the network. */
static int64_t most_for_messages(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int lanes = schedule->plan.allreduce.lanes;
    int64_t message = HVD_SCHEDULE_MESSAGE_BYTES / (int64_t)query->partial_bytes;
    int64_t most = most_that_fit(schedule);
    int64_t lane = most / lanes;

    return schedule->plan.allreduce.is_pairwise && lane > message
               ? lane / message * message * lanes
               : most;
}

/* A sync in each tick that packs a chunk, copies one out or both, and a signal at the end
 * unless it stays open. */
static uint64_t count_signals(const struct hvd_allreduce_plan *plan)
{
    int64_t lag = plan->get_lag;
    int64_t more = plan->chunks < lag ? plan->chunks : lag;

    return plan->chunks > 0 ? (uint64_t)(plan->chunks + more + (plan->is_full ? 0 : 1))
                            : 0;
}

int hvd_schedule_plan_allreduce(struct hvd_schedule *schedule, struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;
    int status = check(query, err);
    int64_t most, lane;

    if (status != 0) {
        return status;
    }
    if (schedule->choice.algorithm == HVD_ALGORITHM_PAIR && query->layout->nodes == 2 &&
        query->layout->size == 2) {
        return hvd_schedule_plan_pair(schedule, err);
    }
    if (hvd_schedule_is_shared_sum(schedule)) {
        return hvd_schedule_plan_shared_sum(schedule);
    }
    if (hvd_schedule_is_single_sum(schedule)) {
        return hvd_schedule_plan_single_sum(schedule);
    }
    plan->lanes = hvd_lanes_widest(query->layout);
    if (query->layout->nodes == 1) {
        choose_on_node(schedule);
    } else {
        choose_between_nodes(schedule);
    }
    plan->carried = hvd_lanes_each(query->layout, plan->lanes);
    most = most_for_messages(schedule);
    if (most == 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%d nodes do not fit: not one element of %zu bytes from each fits the "
            "%zu bytes for what comes; raise " HVD_ENV_MEMORY_LIMIT " or unset it",
            query->layout->nodes, query->partial_bytes, query->geometry.recv_bytes);
    }
    plan->chunks = hvd_chunk_count(query->count, query->element_bytes, most,
                                   schedule->choice.chunk_bytes);
    plan->chunk_elements =
        plan->chunks > 0 ? hvd_divide_up(query->count, plan->chunks) : 1;
    lane = hvd_part_most(plan->chunk_elements, plan->lanes);
    plan->send_lane_bytes = hvd_allreduce_send_bytes(schedule, lane);
    plan->recv_lane_bytes = hvd_allreduce_recv_bytes(schedule, lane);
    schedule->emit = hvd_allreduce_emit;
    schedule->ticks = plan->chunks > 0 ? plan->chunks + plan->get_lag : 0;
    schedule->signals = count_signals(plan);
    schedule->turns = plan->is_full ? plan->chunks : 0;
    schedule->step_capacity = 16 + plan->lanes + hvd_allreduce_steps_between(plan);
    return 0;
}
