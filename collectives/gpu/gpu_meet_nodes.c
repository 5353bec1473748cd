/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes: whether the ranks of a process set add up within them first, and by which
 * memory between them. */
#include <stdatomic.h>
#include <stdio.h>

#include "collectives/gpu/gpu_cross.h"
#include "collectives/gpu/gpu_meeting.h"
#include "collectives/gpu/gpu_routes.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

const char *hvd_gpu_host_of(const struct hvd_gpu_meeting *meeting, int member)
{
    return meeting->boot->peers[meeting->team->ranks[member]].host;
}

const char *hvd_gpu_shape_obstacle(const struct hvd_team *team)
{
    return !hvd_layout_is_homogeneous(team->layout)
               ? "its nodes have different numbers of ranks"
           : team->local_size == 1 ? "it has one rank on each node"
                                   : "";
}

static void say_allreduce(const struct hvd_gpu_run *run, enum hvd_gpu_allreduce chosen,
                          const char *reason)
{
    static const char *const ways[] = {
        [HVD_GPU_ALLREDUCE_AUTO] = "the fastest way, once all are measured",
        [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "within nodes first",
        [HVD_GPU_ALLREDUCE_FLAT] = "over all nodes at once",
    };

    if (run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO, "process set %d: allreduce by NCCL %s: %s", run->peers->set,
                ways[chosen], reason);
    }
}

/* What one rank was told counts for all; flat, which needs less, before the other. */
static enum hvd_gpu_allreduce choose_allreduce(const struct hvd_gpu_meeting *meeting,
                                               char *reason, size_t size)
{
    const char *obstacle = hvd_gpu_shape_obstacle(meeting->team);
    enum hvd_gpu_allreduce chosen = HVD_GPU_ALLREDUCE_AUTO;

    if (obstacle[0] != '\0') {
        snprintf(reason, size, "%s", obstacle);
        return HVD_GPU_ALLREDUCE_FLAT;
    }
    snprintf(reason, size, "no rank asks for one");
    for (int i = 0; i < meeting->team->layout->size; i++) {
        enum hvd_gpu_allreduce told = (enum hvd_gpu_allreduce)meeting->faces[i].allreduce;

        if (told > chosen) {
            chosen = told;
            snprintf(reason, size,
                     "rank %d asks for it, by " HVD_ENV_GPU_ALLREDUCE
                     " or Horovod's variables",
                     meeting->team->ranks[i]);
        }
    }
    return chosen;
}

/* Why a member keeps the set from exchanging GPU memory; false: it does not. */
static bool find_direct_obstacle(const struct hvd_gpu_meeting *meeting, int member,
                                 char *text, size_t size)
{
    const struct hvd_gpu_face *face = &meeting->faces[member];
    int rank = meeting->team->ranks[member];

    if (face->direct == HVD_GPU_DIRECT_OFF) {
        snprintf(text, size, HVD_ENV_GPU_DIRECT "=off on rank %d", rank);
    } else if ((face->card.routes & HVD_ROUTE_UCX_CUDA) == 0) {
        snprintf(text, size,
                 "UCX %d.%d of rank %d on %s is without CUDA (hvd-info --check there)",
                 face->ucx_version / 10000, face->ucx_version / 100 % 100, rank,
                 hvd_gpu_host_of(meeting, member));
    } else if (!face->card.has_kernels) {
        snprintf(text, size,
                 "rank %d on %s has no kernels to add up with (hvd-info --check there)",
                 rank, hvd_gpu_host_of(meeting, member));
    } else {
        return false;
    }
    return true;
}

/* The first rank that asks for it, -1: none. */
static int find_direct_asker(const struct hvd_gpu_meeting *meeting)
{
    for (int i = 0; i < meeting->team->layout->size; i++) {
        if (meeting->faces[i].direct == HVD_GPU_DIRECT_ON) {
            return meeting->team->ranks[i];
        }
    }
    return -1;
}

/* "pinned host memory", "GPU memory", or either, is what all ranks take between nodes. */
static void say_direct(const struct hvd_gpu_run *run, const char *obstacle, int asker)
{
    int set = run->peers->set;

    if (run->team->rank != 0) {
        return;
    }
    if (obstacle[0] != '\0') {
        hvd_log(HVD_LOG_INFO, "process set %d: pinned host memory between nodes: %s", set,
                obstacle);
    } else if (asker >= 0) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: GPU memory between nodes: " HVD_ENV_GPU_DIRECT
                "=on on rank %d",
                set, asker);
    } else {
        hvd_log(HVD_LOG_INFO,
                "process set %d: GPU memory between nodes where that is faster than "
                "pinned host memory: all ranks' UCX has CUDA",
                set);
    }
}

static bool enter_device(void *context)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    const struct hvd_gpu_pool *pool = context;
    bool has_entered = pool->module->enter(pool->device);

    if (!has_entered && !atomic_flag_test_and_set(&is_told)) {
        hvd_log(HVD_LOG_WARN, "the context of the GPU cannot be chosen, which UCX needs "
                              "for memory there: transfers of it may fail");
    }
    return has_entered;
}

static void leave_device(void *context)
{
    const struct hvd_gpu_pool *pool = context;

    pool->module->leave(pool->device);
}

static void add_way(struct hvd_gpu_peers *peers, enum hvd_gpu_allreduce way)
{
    peers->ways[peers->way_count++] = way;
}

/* The ways between nodes, hierarchical ones behind the flat. */
static int find_ways(struct hvd_gpu_run *run, const struct hvd_gpu_meeting *meeting,
                     enum hvd_gpu_allreduce chosen, struct hvd_error *err)
{
    const struct hvd_net_scope scope = {
        .enter = enter_device, .leave = leave_device, .context = run->gpu->pool};
    int size = meeting->team->layout->size, asker = find_direct_asker(meeting), at = 0;
    char obstacle[256] = "";

    while (at < size && !find_direct_obstacle(meeting, at, obstacle, sizeof(obstacle))) {
        at++;
    }
    if (at < size && asker >= 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        HVD_ENV_GPU_DIRECT
                        "=on on rank %d, but GPU memory cannot go between nodes: %s",
                        asker, obstacle);
    }
    if (chosen == HVD_GPU_ALLREDUCE_AUTO) {
        add_way(run->peers, HVD_GPU_ALLREDUCE_FLAT);
    }
    if (asker < 0) {
        add_way(run->peers, HVD_GPU_ALLREDUCE_HIERARCHICAL);
    }
    if (at == size) {
        add_way(run->peers, HVD_GPU_ALLREDUCE_DIRECT);
        hvd_net_use_scope(run->team->net, &scope);
    }
    run->peers->allreduce =
        run->peers->way_count > 1 ? HVD_GPU_ALLREDUCE_AUTO : run->peers->ways[0];
    say_direct(run, obstacle, asker);
    return 0;
}

void hvd_gpu_direct_unused(const struct hvd_gpu_run *run,
                           const struct hvd_gpu_meeting *meeting, const char *reason)
{
    int asker = find_direct_asker(meeting);

    if (asker >= 0 && run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: " HVD_ENV_GPU_DIRECT
                "=on on rank %d changes nothing, the set does not add up within nodes "
                "first: %s",
                run->peers->set, asker, reason);
    }
}

int hvd_gpu_join_nodes(struct hvd_gpu_run *run, const struct hvd_gpu_meeting *meeting,
                       struct hvd_error *err)
{
    const struct hvd_team *team = run->team;
    struct hvd_gpu_peers *peers = run->peers;
    struct hvd_gpu_pool *pool = run->gpu->pool;
    int leader = hvd_layout_rank(team->layout, team->node, 0);
    enum hvd_gpu_allreduce chosen = HVD_GPU_ALLREDUCE_FLAT;
    char reason[128] = "";
    int status;

    if (team->layout->nodes > 1) {
        chosen = choose_allreduce(meeting, reason, sizeof(reason));
    }
    say_allreduce(run, chosen, reason);
    peers->allreduce = chosen;
    if (chosen == HVD_GPU_ALLREDUCE_FLAT) {
        hvd_gpu_direct_unused(run, meeting, reason);
        return 0;
    }
    status = find_ways(run, meeting, chosen, err);
    status = status != 0 ? status
                         : hvd_gpu_cross_create(team, meeting->boot, &peers->cross, err);
    return status != 0
               ? status
               : pool->module->comm_create(pool->device, meeting->faces[leader].node_id,
                                           team->local_rank, team->local_size,
                                           &peers->node_comm, err);
}
