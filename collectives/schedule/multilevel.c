/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter between many nodes, laid out in rows on several levels
 * (schedule_grid.h), so that each talks to few others.
 *
 *   down, level by level   each member of a row gets its part of what the row has, from all the
 *                          others of the row, and adds up; that is what it has on the next level
 *   up again               each member sends the result of its part to all others of the row
 *
 * A batch too small to be cut (linear) goes whole: every member gets all and adds up all,
 * and on the way up only extra nodes get anything.
 *
 * Sums run over a row's members in order, then its extra nodes; then over rows, likewise.
 * That order depends on the number of nodes only, not on who adds up or what is cut: the
 * same bits on all ranks, whatever the batch.
 *
 * One chunk on k levels takes 2k + 1 phases; k of them make a tick:
 *
 *   phase 0          post level 0             tick 0
 *   phase 1 .. k-1   add up, post the next
 *   phase k          add up; post the result  tick 1
 *   phase k+1 ..     await, post the level below
 *   phase 2k         await level 0            tick 2
 *
 * All ranks take the phases of all chunks in the same order, and wait only for what
 * others post before that: no deadlock. */
#include "collectives/schedule/schedule_slices.h"
#include "collectives/schedule/schedule_steps.h"

/* A slice of a chunk that this rank owns, on one level. */
struct view {
    const struct hvd_chunk *chunk;
    struct hvd_slice_part slice;
    int level;
    struct hvd_range whole; /* what my row has */
};

/* Starts with slice.turn -1. */
static struct view view_of(const struct hvd_chunk *chunk, int level)
{
    return (struct view){.chunk = chunk, .slice.turn = -1, .level = level};
}

static const struct hvd_grid_level *level_of(const struct hvd_schedule *schedule,
                                             int level)
{
    return &schedule->setup.slices.grid.level[level];
}

static bool is_member(const struct hvd_schedule *schedule, int level)
{
    return level < schedule->setup.slices.coords.levels;
}

/* A member, or an extra node, of a row of this level. */
static bool is_on(const struct hvd_schedule *schedule, int level)
{
    return level <= schedule->setup.slices.coords.levels;
}

/* What the member in a column adds up of what its row has. */
static struct hvd_range part_of(const struct hvd_schedule *schedule,
                                struct hvd_range whole, int level, int column)
{
    return schedule->setup.slices.is_cut
               ? hvd_part_of(whole, level_of(schedule, level)->width, column)
               : whole;
}

/* False when this rank owns no further slice. */
static bool next_slice(const struct hvd_schedule *schedule, struct view *view)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;

    if (!hvd_slices_next(schedule, view->chunk, &view->slice)) {
        return false;
    }
    view->whole = view->slice.elements;
    for (int level = 0; level < view->level; level++) {
        view->whole = part_of(schedule, view->whole, level, setup->coords.column[level]);
    }
    return true;
}

static int row_size(const struct hvd_schedule *schedule, int level)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;

    return hvd_grid_row_size(&setup->grid, &setup->coords, level);
}

/* My number in my row. */
static int own_number(const struct hvd_schedule *schedule, int level)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;

    return is_member(schedule, level)
               ? setup->coords.column[level]
               : level_of(schedule, level)->width + setup->coords.extra;
}

static int find_owner(const struct hvd_schedule *schedule, const struct view *view,
                      int number)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;

    return hvd_slice_owner(
        schedule->query.layout,
        hvd_grid_node(&setup->grid, &setup->coords, view->level, number),
        view->slice.number);
}

/* --- locations --- */

/* The most elements that one of a row adds up, of so many that the row has. */
static int64_t part_most(const struct hvd_schedule *schedule, int level, int64_t count)
{
    return schedule->setup.slices.is_cut
               ? hvd_part_most(count, level_of(schedule, level)->width)
               : count;
}

/* Where in RECV the partials of a level come in, one stride after the other, and how long
 * the stride is; slice_count: elements of the slice. The sum of a level's partials
 * follows them. */
struct area {
    size_t offset;
    size_t stride;
    size_t sum;
    size_t end;
};

static struct area area_of(const struct hvd_schedule *schedule, int64_t slice_count,
                           int level)
{
    struct area area = {0};
    int64_t count = slice_count;

    for (int i = 0; i <= level; i++) {
        const struct hvd_grid_level *at = level_of(schedule, i);

        count = part_most(schedule, i, count);
        area.stride = (size_t)count * schedule->query.partial_bytes;
        area.offset = area.end;
        area.sum = area.offset + (size_t)(at->width + at->extras) * area.stride;
        area.end = area.sum + area.stride;
    }
    return area;
}

static size_t recv_bytes(const struct hvd_schedule *schedule, int64_t slice_count)
{
    int levels = schedule->setup.slices.grid.levels;

    return area_of(schedule, slice_count, levels - 1).end;
}

static struct hvd_location in_recv(const struct hvd_schedule *schedule,
                                   const struct view *view, size_t offset)
{
    size_t start = (size_t)view->slice.turn * schedule->setup.slices.recv_slice_bytes;

    return hvd_location_of(HVD_LOCATION_RECV, schedule->local_rank, view->chunk->slot,
                           start + offset);
}

static struct area area_in(const struct hvd_schedule *schedule, const struct view *view,
                           int level)
{
    return area_of(schedule, view->slice.elements.count, level);
}

/* Where my partial of element `first` of what the row has is: on level 0 in SEND. */
static struct hvd_location own_partial(const struct hvd_schedule *schedule,
                                       const struct view *view, int64_t first)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;
    size_t offset = (size_t)(first - view->whole.begin) * schedule->query.partial_bytes;

    if (view->level == 0) {
        return hvd_location_of(HVD_LOCATION_SEND, schedule->local_rank, view->chunk->slot,
                               (size_t)view->slice.turn * setup->send_slice_bytes +
                                   offset);
    }
    return in_recv(schedule, view, area_in(schedule, view, view->level - 1).sum + offset);
}

/* --- phases --- */

/* The number in my row at a distance from me; `among`: so many of the first. */
static int number_at(const struct hvd_schedule *schedule, int level, int distance,
                     int among)
{
    return (own_number(schedule, level) + distance + 2 * among) % among;
}

/* Partials of my part from all others of the row; extra nodes come after the members. */
static void post_partial_recvs(struct hvd_schedule *schedule, const struct view *view)
{
    int width = level_of(schedule, view->level)->width;
    int own = own_number(schedule, view->level);
    struct area area = area_in(schedule, view, view->level);
    struct hvd_range mine = part_of(schedule, view->whole, view->level, own);
    size_t bytes = (size_t)mine.count * schedule->query.partial_bytes;

    for (int i = 1; i < width; i++) {
        int number = number_at(schedule, view->level, -i, width);

        hvd_emit_recv(schedule,
                      in_recv(schedule, view, area.offset + (size_t)number * area.stride),
                      bytes, find_owner(schedule, view, number));
    }
    for (int number = width; number < row_size(schedule, view->level); number++) {
        hvd_emit_recv(schedule,
                      in_recv(schedule, view, area.offset + (size_t)number * area.stride),
                      bytes, find_owner(schedule, view, number));
    }
}

/* To each member its part, the next one first. */
static void post_partial_sends(struct hvd_schedule *schedule, const struct view *view)
{
    int width = level_of(schedule, view->level)->width;
    int others = is_member(schedule, view->level) ? width - 1 : width;

    for (int i = 1; i <= others; i++) {
        int number = number_at(schedule, view->level, i, width);
        struct hvd_range part = part_of(schedule, view->whole, view->level, number);

        hvd_emit_send(schedule, own_partial(schedule, view, part.begin),
                      (size_t)part.count * schedule->query.partial_bytes,
                      find_owner(schedule, view, number));
    }
}

static void post_partials(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                          int level)
{
    struct view view = view_of(chunk, level);

    while (is_member(schedule, level) && next_slice(schedule, &view)) {
        post_partial_recvs(schedule, &view);
    }
    view = view_of(chunk, level);
    while (is_on(schedule, level) && next_slice(schedule, &view)) {
        post_partial_sends(schedule, &view);
    }
}

/* The last level's sum is the result. */
static void add_up(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                   int level)
{
    bool is_last = level == schedule->setup.slices.grid.levels - 1;
    struct view view = view_of(chunk, level);

    while (is_member(schedule, level) && next_slice(schedule, &view)) {
        struct area area = area_in(schedule, &view, level);
        int own = own_number(schedule, level);
        struct hvd_range mine = part_of(schedule, view.whole, level, own);
        struct hvd_node_sources sources = {
            .from = in_recv(schedule, &view, area.offset),
            .stride = area.stride,
            .count = row_size(schedule, level),
            .own_number = own,
            .own = own_partial(schedule, &view, mine.begin),
        };

        hvd_emit_reduce_nodes(schedule, &sources, (size_t)mine.count,
                              is_last ? hvd_slices_out(schedule, chunk, mine.begin)
                                      : in_recv(schedule, &view, area.sum));
    }
}

/* Whether the member in a column sends the result to an extra node: one member does, if a
 * batch goes whole, else all. */
static bool is_host(const struct hvd_schedule *schedule, int level, int column, int extra)
{
    int width = level_of(schedule, level)->width;

    return schedule->setup.slices.is_cut || (extra - width) % width == column;
}

static void post_result_recvs(struct hvd_schedule *schedule, const struct view *view)
{
    int width = level_of(schedule, view->level)->width;
    bool is_extra = !is_member(schedule, view->level);
    int own = own_number(schedule, view->level);

    for (int i = is_extra ? 0 : 1; i < width; i++) {
        int number = number_at(schedule, view->level, -i, width);
        struct hvd_range part = part_of(schedule, view->whole, view->level, number);

        if (is_extra ? is_host(schedule, view->level, number, own)
                     : schedule->setup.slices.is_cut) {
            hvd_emit_recv(schedule, hvd_slices_out(schedule, view->chunk, part.begin),
                          (size_t)part.count * schedule->query.element_bytes,
                          find_owner(schedule, view, number));
        }
    }
}

static void post_result_sends(struct hvd_schedule *schedule, const struct view *view)
{
    int width = level_of(schedule, view->level)->width;
    int own = own_number(schedule, view->level);
    struct hvd_range mine = part_of(schedule, view->whole, view->level, own);
    struct hvd_location from = hvd_slices_out(schedule, view->chunk, mine.begin);
    size_t bytes = (size_t)mine.count * schedule->query.element_bytes;

    for (int i = 1; i < width && schedule->setup.slices.is_cut; i++) {
        hvd_emit_send(
            schedule, from, bytes,
            find_owner(schedule, view, number_at(schedule, view->level, i, width)));
    }
    for (int extra = width; extra < row_size(schedule, view->level); extra++) {
        if (is_host(schedule, view->level, own, extra)) {
            hvd_emit_send(schedule, from, bytes, find_owner(schedule, view, extra));
        }
    }
}

static void post_results(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                         int level)
{
    struct view view = view_of(chunk, level);

    while (is_on(schedule, level) && next_slice(schedule, &view)) {
        post_result_recvs(schedule, &view);
    }
    view = view_of(chunk, level);
    while (is_member(schedule, level) && next_slice(schedule, &view)) {
        post_result_sends(schedule, &view);
    }
}

static void run_phase(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                      int phase)
{
    int levels = schedule->setup.slices.grid.levels;
    struct hvd_schedule_mark *mark = &schedule->marks[chunk->slot];

    if (phase == 0) {
        hvd_slices_reduce_local(schedule, chunk);
    } else {
        hvd_emit_wait_recvs(schedule, mark->recvs);
    }
    if (phase > 0 && phase <= levels) {
        add_up(schedule, chunk, phase - 1);
    }
    if (phase < levels) {
        post_partials(schedule, chunk, phase);
    } else if (phase < 2 * levels) {
        post_results(schedule, chunk, 2 * levels - 1 - phase);
    }
    *mark = schedule->posted;
}

static void take_phase(struct hvd_schedule *schedule, int64_t number, int phase)
{
    struct hvd_chunk chunk = hvd_slices_chunk(schedule, number);

    if (hvd_slices_has_chunk(schedule, number)) {
        run_phase(schedule, &chunk, phase);
    }
}

/* Phases of three chunks in turn, or of two if there are but two slots. */
static void advance_multilevel(struct hvd_schedule *schedule, int64_t tick)
{
    int levels = schedule->setup.slices.grid.levels;
    int lag = schedule->setup.slices.finals_lag;

    for (int i = 0; i < levels; i++) {
        take_phase(schedule, tick, i);
        take_phase(schedule, tick - 1, levels + i);
        if (i == (lag == 2 ? 0 : levels - 1)) {
            take_phase(schedule, tick - lag, 2 * levels);
        }
    }
}

bool hvd_multilevel_fits(const struct hvd_schedule *schedule)
{
    struct hvd_grid grid;

    hvd_grid_make(schedule->query.layout->nodes, schedule->grid_levels, &grid);
    return grid.levels > 1;
}

int hvd_multilevel_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    static const struct hvd_slice_ops ops = {recv_bytes, advance_multilevel};
    struct hvd_slices_setup *setup = &schedule->setup.slices;
    int levels, status;

    hvd_grid_make(schedule->query.layout->nodes, schedule->grid_levels, &setup->grid);
    setup->coords = hvd_grid_locate(&setup->grid, schedule->node);
    setup->is_cut = schedule->choice.algorithm == HVD_ALGORITHM_DIRECT;
    setup->finals_lag = schedule->query.geometry.slots > 2 ? 2 : 1;
    setup->get_lag = setup->finals_lag + 1;
    status = hvd_slices_set_up(schedule, &ops, err);
    levels = setup->grid.levels;
    schedule->step_capacity +=
        8 * levels +
        setup->owned * (2 + levels + 4 * (hvd_grid_messages(&setup->grid) + levels));
    return status;
}
