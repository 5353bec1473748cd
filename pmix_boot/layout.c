/* SPDX-License-Identifier: Apache-2.0 */
/* Groups ranks by host name: sorts by (host, rank), then numbers the groups by their
 * lowest rank. */
#include "pmix_boot/layout.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"

struct placed_rank {
    const char *host;
    int rank;
};

static int compare_hosts(const void *left, const void *right)
{
    const struct placed_rank *a = left;
    const struct placed_rank *b = right;
    int order = strcmp(a->host, b->host);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Writes to leader[rank] the lowest rank on the same host. */
static int find_leaders(const char *const *hosts, int size, int *leader)
{
    struct placed_rank *sorted = malloc((size_t)size * sizeof(*sorted));

    if (sorted == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int rank = 0; rank < size; rank++) {
        sorted[rank] = (struct placed_rank){hosts[rank], rank};
    }
    qsort(sorted, (size_t)size, sizeof(*sorted), compare_hosts);
    for (int i = 0, first = 0; i < size; i++) {
        if (strcmp(sorted[i].host, sorted[first].host) != 0) {
            first = i;
        }
        leader[sorted[i].rank] = sorted[first].rank;
    }
    free(sorted);
    return 0;
}

/* Turns leaders, held in layout->node, into node numbers and fills the rest. A leader
 * comes before the other ranks of its node, so its number is known when they look it
 * up. */
static void number_nodes(struct hvd_layout *layout)
{
    int *members = layout->node_first + 1;

    for (int rank = 0; rank < layout->size; rank++) {
        int leader = layout->node[rank];
        int node = leader == rank ? layout->nodes++ : layout->node[leader];

        layout->node[rank] = node;
        layout->local_rank[rank] = members[node]++;
    }
    for (int node = 0; node < layout->nodes; node++) {
        layout->node_first[node + 1] += layout->node_first[node];
    }
    for (int rank = 0; rank < layout->size; rank++) {
        int first = layout->node_first[layout->node[rank]];

        layout->node_rank[first + layout->local_rank[rank]] = rank;
    }
}

static int check_hosts(const char *const *hosts, int size, struct hvd_error *err)
{
    if (size < 1) {
        return hvd_fail(err, HVD_ERR_ARG, "a job of %d ranks, expected at least 1", size);
    }
    for (int rank = 0; rank < size; rank++) {
        if (hosts[rank] == NULL || hosts[rank][0] == '\0') {
            return hvd_fail(err, HVD_ERR_ARG, "rank %d has no host name", rank);
        }
    }
    return 0;
}

int hvd_layout_init(struct hvd_layout *layout, const char *const *hosts, int size,
                    struct hvd_error *err)
{
    int status = check_hosts(hosts, size, err);
    struct hvd_layout made = {.size = size};
    size_t count = (size_t)size;

    if (status < 0) {
        return status;
    }
    made.node = calloc(count, sizeof(int));
    made.local_rank = calloc(count, sizeof(int));
    made.node_first = calloc(count + 1, sizeof(int));
    made.node_rank = calloc(count, sizeof(int));
    if (made.node == NULL || made.local_rank == NULL || made.node_first == NULL ||
        made.node_rank == NULL || find_leaders(hosts, size, made.node) < 0) {
        hvd_layout_finish(&made);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the layout of %d ranks", size);
    }
    number_nodes(&made);
    *layout = made;
    return 0;
}

void hvd_layout_finish(struct hvd_layout *layout)
{
    free(layout->node);
    free(layout->local_rank);
    free(layout->node_first);
    free(layout->node_rank);
    *layout = (struct hvd_layout){0};
}

int hvd_layout_local_size(const struct hvd_layout *layout, int node)
{
    return layout->node_first[node + 1] - layout->node_first[node];
}

int hvd_layout_rank(const struct hvd_layout *layout, int node, int local_rank)
{
    return layout->node_rank[layout->node_first[node] + local_rank];
}

int hvd_layout_count_nodes(const int *node_first, int end, int local_rank)
{
    int count = 0;

    for (int node = 0; node < end; node++) {
        count += node_first[node + 1] - node_first[node] > local_rank ? 1 : 0;
    }
    return count;
}

int hvd_layout_cross_rank(const struct hvd_layout *layout, int rank)
{
    return hvd_layout_count_nodes(layout->node_first, layout->node[rank],
                                  layout->local_rank[rank]);
}

int hvd_layout_cross_size(const struct hvd_layout *layout, int rank)
{
    return hvd_layout_count_nodes(layout->node_first, layout->nodes,
                                  layout->local_rank[rank]);
}

bool hvd_layout_is_homogeneous(const struct hvd_layout *layout)
{
    for (int node = 1; node < layout->nodes; node++) {
        if (hvd_layout_local_size(layout, node) != hvd_layout_local_size(layout, 0)) {
            return false;
        }
    }
    return true;
}
