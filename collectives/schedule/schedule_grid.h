/* SPDX-License-Identifier: Apache-2.0 */
/* Lays many nodes out as a grid of several levels, so that each talks to few others.
 * Pure.
 *
 * Level 0 has all nodes, row after row:
 *
 *     11 nodes, width 3      columns 0  1  2
 *                      row 0         0  1  2   extra 9
 *                      row 1         3  4  5   extra 10
 *                      row 2         6  7  8
 *
 * The nodes of a row talk to each other, then those of each column: level 1 lays out the
 * nodes of a column (here 3) in rows again, in the same way. The last level has a single
 * row. Nodes that do not fill a row of their own become extra nodes of other rows. An
 * extra node gives its data to the members of its row, takes no part in further levels,
 * and receives the result from the members. */
#ifndef HVD_GRID_H
#define HVD_GRID_H

#include <stdbool.h>

enum {
    HVD_GRID_LEVELS = 3
};

struct hvd_grid_level {
    int count; /* nodes that take part */
    int width; /* members of a row */
    int rows;
    int extras; /* the most extra nodes that a row has */
};

struct hvd_grid {
    int levels;
    struct hvd_grid_level level[HVD_GRID_LEVELS];
};

/* The position of a node on each level. */
struct hvd_grid_coords {
    /* The number of levels on which the node is a member of a row. If there are more
     * levels, it is an extra node on the next level and takes no part in those above. */
    int levels;
    int column[HVD_GRID_LEVELS];
    int row[HVD_GRID_LEVELS]; /* the row in which it is a member or an extra node */
    int extra; /* its number among the extra nodes of its row */
};

/* Finds the grid of `nodes` >= 1 nodes that needs the fewest messages. It has `levels`
 * levels, or as many of them as the nodes allow; with 0 any number. */
void hvd_grid_make(int nodes, int levels, struct hvd_grid *grid);

struct hvd_grid_coords hvd_grid_locate(const struct hvd_grid *grid, int node);

/* Returns how many nodes the row of this node has on a level: members and extra nodes. */
int hvd_grid_row_size(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                      int level);

/* Returns the node that has this number in that row. Members have the first numbers,
 * extra nodes the next ones. */
int hvd_grid_node(const struct hvd_grid *grid, const struct hvd_grid_coords *coords,
                  int level, int number);

/* Returns how many messages a member sends if it sends one to each other node of its
 * rows. */
int hvd_grid_messages(const struct hvd_grid *grid);

#endif
