/* SPDX-License-Identifier: Apache-2.0 */
/* Many nodes as a grid of several levels, so that each talks to few others. Pure.
 *
 * Level 0 has all nodes, row after row:
 *
 *     11 nodes, width 3      columns 0  1  2
 *                      row 0         0  1  2   extra 9
 *                      row 1         3  4  5   extra 10
 *                      row 2         6  7  8
 *
 * The nodes of a row talk to each other, then those of each column: on level 1 the rows'
 * numbers take the place of nodes, and are laid out again. The last level is one row.
 * Nodes that do not fill a row of their own are extra nodes of other rows; an extra node
 * gives its data to the members of its row, takes no part in further levels, and gets the
 * result from them. */
#ifndef HVD_GRID_H
#define HVD_GRID_H

#include <stdbool.h>

enum {
    HVD_GRID_LEVELS = 3
};

struct hvd_grid_level {
    int count; /* that take part */
    int width; /* members of a row */
    int rows;
    int extras; /* the most extra nodes of a row */
};

struct hvd_grid {
    int levels;
    struct hvd_grid_level level[HVD_GRID_LEVELS];
};

/* Where a node is, on each level. */
struct hvd_grid_coords {
    /* on which it is a member; grid.levels, or fewer: an extra node of the next */
    int levels;
    int column[HVD_GRID_LEVELS];
    int row[HVD_GRID_LEVELS]; /* of which it is a member, or an extra node */
    int extra; /* its number among the extra nodes of its row */
};

/* The grid of `nodes` >= 1 nodes with the fewest messages; of so many levels, unless that
 * is 0, or of as many of them as the nodes allow. */
void hvd_grid_make(int nodes, int levels, struct hvd_grid *grid);

struct hvd_grid_coords hvd_grid_locate(const struct hvd_grid *grid, int node);

/* The size of the node's row on a level: members, then extra nodes. */
int hvd_grid_row_size(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                      int level);

/* The node with this number in that row. */
int hvd_grid_node(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                  int level, int number);

/* Messages that a member sends when it gives each of the others of its rows one. */
int hvd_grid_messages(const struct hvd_grid *grid);

#endif
