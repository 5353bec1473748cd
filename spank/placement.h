/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a task in its step. Pure. */
#ifndef HVD_SPANK_PLACEMENT_H
#define HVD_SPANK_PLACEMENT_H

#include <stdbool.h>

struct hvd_spank_placement {
    int nodes; /* number of nodes of the step */
    int node; /* index of the task's node, from 0 */
    int tasks; /* number of tasks of the whole step */
    int local_rank;
    int local_size;
};

/* Computes the cross rank and cross size of a task from Slurm's list of tasks per node,
 * such as "4(x2),3": the index of its node among the nodes that have its local rank, and
 * the number of these nodes. Returns false, and leaves the outputs unchanged, if the list
 * does not match the placement (steps of several components, hand-made layouts) or memory
 * is out. */
bool hvd_spank_placement_cross(const struct hvd_spank_placement *placement,
                               const char *tasks_per_node, int *rank, int *size);

#endif
