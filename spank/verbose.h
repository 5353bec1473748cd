/* SPDX-License-Identifier: Apache-2.0 */
/* What --hvd=verbose prints about the binding of a node: one line, a line for each
 * warning, and the whole table on one node of the step. Every node prints its own part,
 * so no node has to know of another. */
#ifndef HVD_SPANK_VERBOSE_H
#define HVD_SPANK_VERBOSE_H

#include <stdio.h>

#include "gpu_binding/plan.h"

/* All pointers are borrowed. */
struct hvd_spank_node_binding {
    const char *host;
    int ranks; /* on this node */
    bool is_isolated; /* each rank sees GPUs of its own; the plan is the first rank's */
    bool is_first_node; /* of the step */
    const char *failure; /* why the plan is not in force; NULL: it is */
    const char *threads; /* the first rank's OMP_NUM_THREADS; "": unknown */
    const struct hvd_topology *topology;
    const struct hvd_plan *plan;
};

/* The table is printed for the first node of the step, and for a node whose plan is not
 * in force. */
void hvd_spank_verbose_print(const struct hvd_spank_node_binding *binding, FILE *out);

#endif
