/* SPDX-License-Identifier: Apache-2.0 */
/* Fair sharing of a node among its working ranks. */
#include "contrib/bench/simulate/node.h"

#include <stdlib.h>

#include "gpu_binding/error.h"

int simulate_node_init(struct simulate_node *node, int ranks, double most)
{
    *node = (struct simulate_node){.ranks = ranks, .most = most};
    node->left = calloc((size_t)ranks, sizeof(node->left[0]));
    for (int i = 0; node->left != NULL && i < ranks; i++) {
        node->left[i] = -1;
    }
    return node->left != NULL ? 0 : HVD_ERR_NOMEM;
}

void simulate_node_finish(struct simulate_node *node)
{
    free(node->left);
    *node = (struct simulate_node){0};
}

static double speed(const struct simulate_node *node)
{
    return node->working > node->most ? node->most / node->working : 1;
}

static void pass(struct simulate_node *node, double now)
{
    double done = (now - node->now) * speed(node);

    for (int i = 0; i < node->ranks && node->working > 0; i++) {
        if (node->left[i] >= 0) {
            node->left[i] = node->left[i] > done ? node->left[i] - done : 0;
        }
    }
    node->now = now;
}

void simulate_node_start(struct simulate_node *node, int rank, double work, double now)
{
    pass(node, now);
    node->left[rank] = work;
    node->working++;
    node->version++;
}

int simulate_node_next(const struct simulate_node *node, double *when)
{
    int first = -1;

    for (int i = 0; i < node->ranks; i++) {
        if (node->left[i] >= 0 && (first < 0 || node->left[i] < node->left[first])) {
            first = i;
        }
    }
    if (first >= 0) {
        *when = node->now + node->left[first] / speed(node);
    }
    return first;
}

void simulate_node_end(struct simulate_node *node, int rank, double now)
{
    pass(node, now);
    node->left[rank] = -1;
    node->working--;
    node->version++;
}
