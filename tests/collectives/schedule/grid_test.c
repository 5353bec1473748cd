/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the grid in which the algorithm multilevel arranges any number of nodes: the
 * nodes of a row agree on their coordinates. */
#include "collectives/schedule/schedule_grid.h"

#include "tests/tap.h"

enum {
    MOST_NODES = 1200
};

static int own_number(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                      int level)
{
    return level < coords->levels ? coords->column[level]
                                  : grid->level[level].width + coords->extra;
}

/* Returns the number of levels on which a node has a row. */
static int rows_of(const struct hvd_grid *grid, const struct hvd_grid_coords *coords)
{
    return coords->levels < grid->levels ? coords->levels + 1 : coords->levels;
}

/* Whether all nodes of this node's row agree that they are in this row, and on the number
 * of each node in it. */
static bool is_known_in_row(const struct hvd_grid *grid, int node, int level)
{
    struct hvd_grid_coords coords = hvd_grid_locate(grid, node);
    int size = hvd_grid_row_size(grid, &coords, level);
    int own = own_number(grid, &coords, level);

    if (own >= size || hvd_grid_node(grid, &coords, level, own) != node) {
        return false;
    }
    for (int number = 0; number < size; number++) {
        int other = hvd_grid_node(grid, &coords, level, number);
        struct hvd_grid_coords theirs = hvd_grid_locate(grid, other);

        if (rows_of(grid, &theirs) <= level || theirs.row[level] != coords.row[level] ||
            own_number(grid, &theirs, level) != number ||
            hvd_grid_node(grid, &theirs, level, own) != node) {
            return false;
        }
    }
    return true;
}

static bool all_are_known(int nodes)
{
    struct hvd_grid grid;

    hvd_grid_make(nodes, 0, &grid);
    for (int node = 0; node < nodes; node++) {
        struct hvd_grid_coords coords = hvd_grid_locate(&grid, node);

        for (int level = 0; level < rows_of(&grid, &coords); level++) {
            if (!is_known_in_row(&grid, node, level)) {
                tap_note("%d nodes: node %d, level %d", nodes, node, level);
                return false;
            }
        }
    }
    return true;
}

/* Whether the last level is one row without extra nodes. */
static bool ends_in_one_row(int nodes)
{
    struct hvd_grid grid;
    const struct hvd_grid_level *last;

    hvd_grid_make(nodes, 0, &grid);
    last = &grid.level[grid.levels - 1];
    return last->rows == 1 && last->extras == 0 && last->width == last->count;
}

int main(void)
{
    bool is_known = true, ends = true, is_short = true;
    struct hvd_grid grid;

    for (int nodes = 1; nodes <= MOST_NODES; nodes += nodes < 200 ? 1 : 37) {
        is_known = is_known && all_are_known(nodes);
        ends = ends && ends_in_one_row(nodes);
        hvd_grid_make(nodes, 0, &grid);
        is_short =
            is_short && (nodes <= 16 ? grid.levels == 1 : hvd_grid_messages(&grid) <= 36);
    }
    tap_ok(is_known, "all nodes of a row agree on the row and on their numbers in it");
    tap_ok(ends, "the last level is one row");
    tap_ok(is_short, "16 nodes are one row; with 1200 a node talks to at most 36 others");
    return tap_done();
}
