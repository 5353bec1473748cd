/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the binding of a node for --hvd=verbose: one line, a line for each warning, and
 * on the first node of the step the whole table. Every node prints its own part, so the
 * nodes need not communicate. */
#ifndef HVD_SPANK_VERBOSE_H
#define HVD_SPANK_VERBOSE_H

#include <stdio.h>

#include "gpu_binding/plan.h"

/* All pointers are borrowed. */
struct hvd_spank_node_binding {
    const char *host;
    int ranks; /* on this node */
    bool is_isolated; /* each rank sees GPUs of its own; the plan is the first rank's */
    bool is_first_node; /* this node is the first of the step */
    const char *failure; /* why the plan could not be applied; NULL: it was */
    const char *threads; /* the first rank's OMP_NUM_THREADS; "": unknown */
    const struct hvd_topology *topology;
    const struct hvd_plan *plan;
};

/* Prints the binding. The table is printed for the first node of the step, and for a node
 * where the plan could not be applied. */
void hvd_spank_verbose_print(const struct hvd_spank_node_binding *binding, FILE *out);

#endif
