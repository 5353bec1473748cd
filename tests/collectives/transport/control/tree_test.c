/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the shape of the control network, which is a tree. */
#include "collectives/transport/control/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    MAX_RANKS = 4000
};

static char names[MAX_RANKS][16];
static const char *hosts[MAX_RANKS];

static int depth_of(const struct hvd_layout *layout, int rank)
{
    int depth = 0;

    while (rank > 0 && depth <= layout->size) {
        rank = hvd_tree_parent(layout, rank);
        depth++;
    }
    return rank == 0 ? depth : -1;
}

/* Returns the largest depth that a tree of this many nodes may have: hops between nodes,
 * and one within a node. */
static int depth_limit(int nodes)
{
    int levels = 0;
    long reached = 1;

    for (long width = 1; reached < nodes; levels++) {
        width *= HVD_TREE_FANOUT;
        reached += width;
    }
    return levels + 1; /* plus one hop within the node */
}

/* Returns whether every rank except rank 0 is a child of exactly one rank, its parent. */
static bool reaches_everyone(const struct hvd_layout *layout)
{
    int *seen = calloc((size_t)layout->size, sizeof(*seen));
    int *children = calloc((size_t)layout->size, sizeof(*children));
    bool is_good = hvd_tree_parent(layout, 0) == -1;

    for (int rank = 0; rank < layout->size; rank++) {
        int count = hvd_tree_children(layout, rank, children);

        is_good = is_good && count == hvd_tree_children(layout, rank, NULL);
        for (int i = 0; i < count; i++) {
            seen[children[i]]++;
            is_good = is_good && hvd_tree_parent(layout, children[i]) == rank;
        }
    }
    for (int rank = 0; rank < layout->size; rank++) {
        is_good = is_good && seen[rank] == (rank == 0 ? 0 : 1);
    }
    free(seen);
    free(children);
    return is_good;
}

static bool is_shallow(const struct hvd_layout *layout)
{
    int limit = depth_limit(layout->nodes);

    for (int rank = 0; rank < layout->size; rank++) {
        int depth = depth_of(layout, rank);

        if (depth < 0 || depth > limit) {
            return false;
        }
    }
    return true;
}

/* Returns whether only the lowest rank of each node has links to other nodes. */
static bool crosses_nodes_at_leaders_only(const struct hvd_layout *layout)
{
    for (int rank = 1; rank < layout->size; rank++) {
        int parent = hvd_tree_parent(layout, rank);

        if (layout->local_rank[parent] != 0) {
            return false;
        }
        if (layout->node[parent] != layout->node[rank] && layout->local_rank[rank] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_tree(int ranks)
{
    struct hvd_layout layout;
    bool is_good;

    if (hvd_layout_init(&layout, hosts, ranks, NULL) != 0) {
        return false;
    }
    is_good = reaches_everyone(&layout) && is_shallow(&layout) &&
              crosses_nodes_at_leaders_only(&layout);
    hvd_layout_finish(&layout);
    return is_good;
}

static void every_number_of_nodes(void)
{
    bool is_good = true;

    for (int i = 0; i < MAX_RANKS; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
    }
    for (int nodes = 1; nodes <= 1000 && is_good; nodes++) {
        is_good = is_tree(nodes);
        if (!is_good) {
            tap_note("fails with %d nodes", nodes);
        }
    }
    tap_ok(is_good,
           "1 to 1000 nodes with one rank each: every rank is reached once, in few hops");
}

static void random_layouts(unsigned seed)
{
    bool is_good = true;

    srandom(seed);
    for (int round = 0; round < 200 && is_good; round++) {
        int ranks = 1 + (int)(random() % MAX_RANKS);
        int nodes = 1 + (int)(random() % 1000);

        for (int i = 0; i < ranks; i++) {
            hosts[i] = names[random() % nodes];
        }
        is_good = is_tree(ranks);
        if (!is_good) {
            tap_note("fails in round %d: %d ranks on %d nodes", round, ranks, nodes);
        }
    }
    tap_ok(is_good, "random layouts: every rank is reached once, and only leaders have "
                    "links to other nodes");
}

int main(void)
{
    for (int i = 0; i < MAX_RANKS; i++) {
        hosts[i] = names[i];
    }
    every_number_of_nodes();
    random_layouts(tap_seed(1));
    return tap_done();
}
