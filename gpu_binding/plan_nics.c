/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the NICs of each rank: the active ones nearest to its GPU. Ranks with the same
 * nearest NICs divide them, because otherwise all ranks would use the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan_steps.h"

/* The NICs that may be chosen, as indexes into topology->nics. */
struct candidates {
    int *nics;
    int count;
};

static void collect_candidates(const struct hvd_topology *topology,
                               struct candidates *candidates)
{
    bool has_infiniband = false;

    for (int i = 0; i < topology->nic_count; i++) {
        const struct hvd_nic *nic = &topology->nics[i];

        has_infiniband = has_infiniband || (nic->is_active && nic->is_infiniband);
    }
    for (int i = 0; i < topology->nic_count; i++) {
        const struct hvd_nic *nic = &topology->nics[i];

        if (nic->is_active && nic->is_infiniband == has_infiniband) {
            candidates->nics[candidates->count++] = i;
        }
    }
}

static enum hvd_closeness closeness_of(const struct hvd_topology *topology, int gpu,
                                       int nic)
{
    return topology->closeness[gpu * topology->nic_count + nic];
}

/* Marks the NICs nearest to a GPU in near[] and returns their number; 0 if all NICs are
 * on other sockets than the GPU. */
static int mark_nearest(const struct hvd_topology *topology,
                        const struct candidates *candidates, int gpu, bool *near)
{
    enum hvd_closeness best = HVD_CLOSE_SYS;
    int count = 0;

    memset(near, 0, (size_t)topology->nic_count * sizeof(*near));
    if (gpu == HVD_NONE) {
        return 0;
    }
    for (int i = 0; i < candidates->count; i++) {
        enum hvd_closeness here = closeness_of(topology, gpu, candidates->nics[i]);

        best = here < best ? here : best;
    }
    for (int i = 0; i < candidates->count && best != HVD_CLOSE_SYS; i++) {
        if (closeness_of(topology, gpu, candidates->nics[i]) == best) {
            near[candidates->nics[i]] = true;
            count++;
        }
    }
    return count;
}

static void append_nic(char *text, size_t size, const struct hvd_nic *nic)
{
    size_t used = strlen(text);
    char item[64];

    snprintf(item, sizeof(item), "%s%s:%d", used > 0 ? "," : "", nic->name, nic->port);
    /* Leave out a NIC that does not fit, so that the list has whole names only. */
    if (used + strlen(item) < size) {
        memcpy(text + used, item, strlen(item) + 1);
    }
}

/* Gives a rank its part of the `count` marked NICs, which `ranks` ranks share; this rank
 * is number `index` of them. If there are fewer NICs than ranks, each rank gets one in
 * turn. */
static void take_part(const struct hvd_topology *topology, const bool *near, int count,
                      int index, int ranks, struct hvd_plan_row *row)
{
    int from = count < ranks ? index % count : (int)((long)index * count / ranks);
    int to = count < ranks ? from + 1 : (int)((long)(index + 1) * count / ranks);
    int number = 0;

    for (int i = 0; i < topology->nic_count; i++) {
        if (!near[i]) {
            continue;
        }
        if (number >= from && number < to) {
            append_nic(row->nic, sizeof(row->nic), &topology->nics[i]);
        }
        number++;
    }
}

/* Gives each rank its NICs. near has space for a row of marks per rank. */
static void deal_nics(struct hvd_plan_work *work, const struct candidates *candidates,
                      bool *near)
{
    const struct hvd_topology *topology = work->topology;
    struct hvd_plan *plan = work->plan;
    size_t width = (size_t)topology->nic_count;

    for (int i = 0; i < plan->row_count; i++) {
        mark_nearest(topology, candidates, plan->rows[i].gpu.gpu,
                     near + (size_t)i * width);
    }
    for (int i = 0; i < plan->row_count; i++) {
        const bool *mine = near + (size_t)i * width;
        int index = 0;
        int ranks = 0;
        int count = 0;

        for (size_t k = 0; k < width; k++) {
            count += mine[k];
        }
        for (int j = 0; j < plan->row_count && count > 0; j++) {
            if (memcmp(near + (size_t)j * width, mine, width * sizeof(*mine)) == 0) {
                index += j < i;
                ranks++;
            }
        }
        if (count > 0) {
            take_part(topology, mine, count, index, ranks, &plan->rows[i]);
        }
    }
}

int hvd_plan_deal_nics(struct hvd_plan_work *work, struct hvd_error *err)
{
    size_t nics = (size_t)work->topology->nic_count;
    struct candidates candidates = {calloc(nics + 1, sizeof(int)), 0};
    bool *near = calloc((size_t)work->plan->row_count * nics + 1, sizeof(*near));
    int status = 0;

    if (candidates.nics == NULL || near == NULL) {
        status =
            hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %zu network cards", nics);
    } else {
        collect_candidates(work->topology, &candidates);
        if (candidates.count > 1) {
            deal_nics(work, &candidates, near);
        }
    }
    free(candidates.nics);
    free(near);
    return status;
}
