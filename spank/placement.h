/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task stands in its step. Pure. */
#ifndef HVD_SPANK_PLACEMENT_H
#define HVD_SPANK_PLACEMENT_H

#include <stdbool.h>

struct hvd_spank_placement {
    int nodes; /* of the step */
    int node; /* this task's, counted from 0 */
    int tasks; /* of the whole step */
    int local_rank;
    int local_size;
};

/* From Slurm's text about tasks per node, such as "4(x2),3": the index of the task's node
 * among the nodes that have its local rank, and their number. False, and the outputs
 * untouched, when the text does not agree with the placement (steps of several
 * components, hand-made layouts), or without memory: then the task cannot know. */
bool hvd_spank_placement_cross(const struct hvd_spank_placement *placement,
                               const char *tasks_per_node, int *rank, int *size);

#endif
