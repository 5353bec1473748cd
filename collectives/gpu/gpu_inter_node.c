/* SPDX-License-Identifier: Apache-2.0 */
/* The inter-node team of a rank. */
#include "collectives/gpu/gpu_inter_node.h"

#include <stdlib.h>

#include "collectives/run/team.h"
#include "gpu_binding/base/error.h"

/* Inter-node teams have their own channel numbers, from here on; other teams count from
 * 0. */
static const uint32_t first_channel = 1u << 31;

struct hvd_gpu_inter_node {
    struct hvd_shm *shm;
    struct hvd_shm_region *region;
    struct hvd_team team;
};

static int open_slots(struct hvd_gpu_inter_node *inter_node,
                      const struct hvd_geometry *geometry, struct hvd_error *err)
{
    const struct hvd_shm_sizes sizes = {.local_size = 1, .geometry = *geometry};
    const int member = 0;
    int fd = hvd_shm_open(&sizes, err);
    int status = fd < 0 ? fd : hvd_shm_create(fd, 0, &sizes, NULL, &inter_node->shm, err);

    return status != 0 ? status
                       : hvd_shm_region_open(inter_node->shm, &member, 1,
                                             &inter_node->region, err);
}

static int compare_ranks(const void *a, const void *b)
{
    const int *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static int init_team(struct hvd_gpu_inter_node *inter_node, const struct hvd_team *team,
                     const struct hvd_boot *boot, struct hvd_error *err)
{
    int nodes = team->layout->nodes, status;
    int *ranks = calloc((size_t)nodes, sizeof(ranks[0]));

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", nodes);
    }
    for (int i = 0; i < nodes; i++) {
        ranks[i] = team->ranks[hvd_layout_rank(team->layout, i, team->local_rank)];
    }
    qsort(ranks, (size_t)nodes, sizeof(ranks[0]), compare_ranks);
    inter_node->team.net = team->net;
    inter_node->team.region = inter_node->region;
    inter_node->team.channel = first_channel | team->channel;
    inter_node->team.geometry = team->geometry;
    inter_node->team.algorithms = team->algorithms;
    status = hvd_team_init(&inter_node->team, boot, ranks, nodes, err);
    if (status == 0) {
        inter_node->team.local_ranks[0] = 0; /* no other rank shares its memory */
    }
    free(ranks);
    return status;
}

int hvd_gpu_inter_node_create(const struct hvd_team *team, const struct hvd_boot *boot,
                              struct hvd_gpu_inter_node **out, struct hvd_error *err)
{
    struct hvd_gpu_inter_node *inter_node = calloc(1, sizeof(*inter_node));
    int status;

    if (inter_node == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team");
    }
    status = open_slots(inter_node, &team->geometry, err);
    if (status == 0) {
        status = init_team(inter_node, team, boot, err);
    }
    if (status != 0) {
        hvd_gpu_inter_node_destroy(inter_node);
        return status;
    }
    *out = inter_node;
    return 0;
}

void hvd_gpu_inter_node_destroy(struct hvd_gpu_inter_node *inter_node)
{
    if (inter_node == NULL) {
        return;
    }
    hvd_team_finish(&inter_node->team);
    hvd_shm_region_close(inter_node->region);
    hvd_shm_destroy(inter_node->shm);
    free(inter_node);
}

struct hvd_team *hvd_gpu_inter_node_team(struct hvd_gpu_inter_node *inter_node)
{
    return &inter_node->team;
}
