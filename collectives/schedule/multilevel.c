/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-level (torus) allreduce and reducescatter between many nodes. The nodes are laid
 * out in rows on several levels (schedule_grid.h), and each talks only to the nodes of
 * its rows.
 *
 *   down, level by level   reduce-scatter: each member of a row receives its part of the
 *                          row's data from all others of the row and reduces it; the next
 *                          level works on the sum
 *   up again               allgather: each member sends the result of its part to all
 *                          others of its row
 *
 * If the table chooses linear (is_cut is false), data is not cut into parts: every member
 * receives and reduces all data of its row. On the way up only the extra nodes then
 * receive anything.
 *
 * Sums run over the members of a row in order, then over its extra nodes; then in the
 * same way over rows. This order depends only on the number of nodes, not on the node
 * that adds up or on how data is cut, so results have the same bits on all ranks and for
 * all batches.
 *
 * On k levels a chunk takes 2k + 1 phases, k of them per tick:
 *
 *   phase 0          post level 0             tick 0
 *   phase 1 .. k-1   reduce, post the next level
 *   phase k          reduce; post the result  tick 1
 *   phase k+1 ..     await a level, post the level below
 *   phase 2k         await level 0            tick 2
 *
 * No deadlock: all ranks run the phases of all chunks in the same order, and a phase
 * waits only for messages that other ranks post in earlier phases. */
#include "collectives/schedule/schedule_slices.h"
#include "collectives/schedule/schedule_steps.h"

/* A slice of a chunk that this rank owns, as one level sees it. */
struct view {
    const struct hvd_chunk *chunk;
    struct hvd_slice_part slice;
    int level;
    struct hvd_range whole; /* elements that the nodes of my row hold on this level */
};

/* Returns a view for next_slice, which moves it to the first slice. */
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

/* Whether my node takes part in a level, as a member of a row or as an extra node. */
static bool is_on(const struct hvd_schedule *schedule, int level)
{
    return level <= schedule->setup.slices.coords.levels;
}

/* Returns the part of the row's elements that the member in a column reduces. */
static struct hvd_range part_of(const struct hvd_schedule *schedule,
                                struct hvd_range whole, int level, int column)
{
    return schedule->setup.slices.is_cut
               ? hvd_part_of(whole, level_of(schedule, level)->width, column)
               : whole;
}

/* Moves the view to the next slice that this rank owns; false if there is none. */
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

/* Returns my node's number in its row. */
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

/* Returns the most elements that one member reduces, out of `count` elements of its
 * row. */
static int64_t part_most(const struct hvd_schedule *schedule, int level, int64_t count)
{
    return schedule->setup.slices.is_cut
               ? hvd_part_most(count, level_of(schedule, level)->width)
               : count;
}

/* The location of a level's partials in RECV, as offsets within a slice. The partials of
 * the row's nodes come first, `stride` bytes apart; their sum follows. slice_count:
 * elements of the slice. */
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

/* Returns where my node's partial of element `first` lies. On level 0 that is in SEND; on
 * higher levels it is the sum of the level below, in RECV. */
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

/* Returns the number, in my row, of the node `distance` places after mine (before it, if
 * negative). The first `among` nodes of the row form a cycle. */
static int number_at(const struct hvd_schedule *schedule, int level, int distance,
                     int among)
{
    return (own_number(schedule, level) + distance + 2 * among) % among;
}

/* Posts the receives of my part's partials from the other members of the row, then from
 * its extra nodes. */
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

/* Sends each member the partials of its part. Each node begins with the next one, so that
 * not all send to the same node first. */
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

/* Reduces my part over the row. The sum of the last level is the result and goes to
 * OUT. */
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

/* Whether the member in a column sends its result to an extra node. All members do if
 * data is cut into parts; otherwise one member does. */
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

/* Runs one tick: phases of up to three chunks in turn, or of two if there are only two
 * slots. */
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
    setup->messages = setup->is_cut ? hvd_grid_messages(&setup->grid) : 0;
    setup->finals_lag = schedule->query.geometry.slots > 2 ? 2 : 1;
    setup->get_lag = setup->finals_lag + 1;
    status = hvd_slices_set_up(schedule, &ops, err);
    levels = setup->grid.levels;
    schedule->step_capacity +=
        8 * levels +
        setup->owned * (2 + levels + 4 * (hvd_grid_messages(&setup->grid) + levels));
    return status;
}
