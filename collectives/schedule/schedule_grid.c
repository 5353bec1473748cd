/* SPDX-License-Identifier: Apache-2.0 */
/* Lays nodes out in rows on up to three levels. */
#include "collectives/schedule/schedule_grid.h"

#include <assert.h>

/* Costs, in units of one message to another node of the row. A level adds one message
 * down and one up that other nodes wait for. An extra node makes the members of its row
 * receive more messages than other nodes. Simulated (contrib/bench/simulate) for network
 * cards of 25 and 100 Gb/s and 0.5 to 2 us of processor time per message: two levels
 * break even with one at about 20 nodes, three with two at about 100. */
enum {
    COST_OF_LEVEL = 9,
    COST_OF_EXTRA = 8,
};

static struct hvd_grid_level make_level(int count, int width)
{
    struct hvd_grid_level level = {.count = count, .width = width, .rows = count / width};
    int left = count - level.rows * width;

    level.extras = (left + level.rows - 1) / level.rows;
    return level;
}

int hvd_grid_messages(const struct hvd_grid *grid)
{
    int messages = 0;

    for (int i = 0; i < grid->levels; i++) {
        messages += grid->level[i].width - 1 + grid->level[i].extras;
    }
    return messages;
}

static int cost_of(const struct hvd_grid *grid)
{
    int cost = hvd_grid_messages(grid) + grid->levels * COST_OF_LEVEL;

    for (int i = 0; i < grid->levels; i++) {
        cost += grid->level[i].extras * COST_OF_EXTRA;
    }
    return cost;
}

/* Whether `grid` is better than `other`. */
static bool is_better(const struct hvd_grid *grid, const struct hvd_grid *other,
                      int levels)
{
    bool has_more = grid->levels <= levels && grid->levels > other->levels;
    bool is_alike = levels == 0 || grid->levels == other->levels;

    return has_more || (is_alike && cost_of(grid) < cost_of(other));
}

void hvd_grid_make(int nodes, int levels, struct hvd_grid *grid)
{
    *grid = (struct hvd_grid){.levels = 1, .level = {make_level(nodes, nodes)}};
    for (int first = 2; first * first <= nodes; first++) {
        struct hvd_grid_level level = make_level(nodes, first);
        struct hvd_grid two = {2, {level, make_level(level.rows, level.rows)}};

        *grid = is_better(&two, grid, levels) ? two : *grid;
        for (int second = first; second * second <= level.rows; second++) {
            struct hvd_grid_level next = make_level(level.rows, second);
            struct hvd_grid three = {3, {level, next, make_level(next.rows, next.rows)}};

            *grid = is_better(&three, grid, levels) ? three : *grid;
        }
    }
}

struct hvd_grid_coords hvd_grid_locate(const struct hvd_grid *grid, int node)
{
    struct hvd_grid_coords coords = {0};
    int number = node;

    for (int i = 0; i < grid->levels; i++) {
        const struct hvd_grid_level *level = &grid->level[i];
        int members = level->width * level->rows;

        if (number >= members) {
            coords.row[i] = (number - members) % level->rows;
            coords.extra = (number - members) / level->rows;
            return coords;
        }
        coords.levels++;
        coords.column[i] = number % level->width;
        number /= level->width;
        coords.row[i] = number;
    }
    return coords;
}

int hvd_grid_row_size(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                      int level)
{
    const struct hvd_grid_level *at = &grid->level[level];
    int left = at->count - at->width * at->rows;

    return at->width + left / at->rows + (coords->row[level] < left % at->rows ? 1 : 0);
}

int hvd_grid_node(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                  int level, int number)
{
    const struct hvd_grid_level *at = &grid->level[level];

    assert(number >= 0 && number < hvd_grid_row_size(grid, coords, level));
    number = number < at->width ? coords->row[level] * at->width + number
                                : at->width * at->rows + (number - at->width) * at->rows +
                                      coords->row[level];
    while (level-- > 0) {
        number = number * grid->level[level].width + coords->column[level];
    }
    return number;
}
