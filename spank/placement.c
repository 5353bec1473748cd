/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the cross rank of a task from Slurm's list of tasks per node. */
#include "spank/placement.h"

#include <stdlib.h>

#include "pmix_boot/layout.h"
#include "spank/slurm_numbers.h"

/* Writes to first[n] the number of tasks on the nodes before node n, for n from 0 to
 * nodes. Returns false if the list has another number of nodes or tasks than the
 * placement. */
static bool count_tasks(const struct hvd_spank_placement *placement, const char *text,
                        int *first)
{
    struct hvd_spank_count_run run;
    const char *cursor = text;
    int node = 0;

    first[0] = 0;
    while (hvd_spank_count_next(&cursor, &run)) {
        for (int i = 0; i < run.nodes; i++) {
            if (node == placement->nodes || run.value > placement->tasks - first[node]) {
                return false;
            }
            first[node + 1] = first[node] + run.value;
            node++;
        }
    }
    return *cursor == '\0' && node == placement->nodes && first[node] == placement->tasks;
}

bool hvd_spank_placement_cross(const struct hvd_spank_placement *placement,
                               const char *tasks_per_node, int *rank, int *size)
{
    int node = placement->node;
    int *first = malloc(((size_t)placement->nodes + 1) * sizeof(*first));
    bool is_known = first != NULL && node < placement->nodes &&
                    count_tasks(placement, tasks_per_node, first) &&
                    first[node + 1] - first[node] == placement->local_size &&
                    placement->local_rank < placement->local_size;

    if (is_known) {
        *rank = hvd_layout_count_nodes(first, node, placement->local_rank);
        *size = hvd_layout_count_nodes(first, placement->nodes, placement->local_rank);
    }
    free(first);
    return is_known;
}
