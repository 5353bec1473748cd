/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the control tree. Pure. */
#include "collectives/transport/control/tree.h"

#include <stddef.h>

static int leader_of(const struct hvd_layout *layout, int node)
{
    return hvd_layout_rank(layout, node, 0);
}

int hvd_tree_parent(const struct hvd_layout *layout, int rank)
{
    int node = layout->node[rank];

    if (layout->local_rank[rank] != 0) {
        return leader_of(layout, node);
    }
    return node == 0 ? -1 : leader_of(layout, (node - 1) / HVD_TREE_FANOUT);
}

int hvd_tree_children(const struct hvd_layout *layout, int rank, int *children)
{
    int node = layout->node[rank];
    int count = 0;

    if (layout->local_rank[rank] != 0) {
        return 0;
    }
    for (int i = 1; i <= HVD_TREE_FANOUT; i++) {
        int child = node * HVD_TREE_FANOUT + i;

        if (child >= layout->nodes) {
            break;
        }
        if (children != NULL) {
            children[count] = leader_of(layout, child);
        }
        count++;
    }
    for (int i = 1; i < hvd_layout_local_size(layout, node); i++) {
        if (children != NULL) {
            children[count] = hvd_layout_rank(layout, node, i);
        }
        count++;
    }
    return count;
}
