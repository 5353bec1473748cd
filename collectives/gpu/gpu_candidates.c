/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the algorithms that a process set can use for an allreduce by NCCL across nodes,
 * from the offers of its ranks, and creates what they need. */
#include <stdatomic.h>
#include <stdio.h>

#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "collectives/gpu/gpu_inter_node.h"
#include "collectives/gpu/gpu_rendezvous.h"
#include "collectives/gpu/gpu_connectivity.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

const char *hvd_gpu_hierarchical_obstacle(const struct hvd_team *team)
{
    return !hvd_layout_is_homogeneous(team->layout)
               ? "its nodes have different numbers of ranks"
           : team->local_size == 1 ? "it has one rank on each node"
                                   : "";
}

static void say_allreduce(const struct hvd_gpu_run *run, enum hvd_gpu_allreduce chosen,
                          const char *reason)
{
    static const char *const texts[] = {
        [HVD_GPU_ALLREDUCE_AUTO] = "auto, to be measured for each size",
        [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "hierarchical",
        [HVD_GPU_ALLREDUCE_FLAT] = "flat",
    };

    if (run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO, "process set %d: allreduce by NCCL: %s: %s", run->set->id,
                texts[chosen], reason);
    }
}

/* If ranks have different settings, flat is chosen, because it has the fewest
 * requirements. It is also the default: NCCL knows its networks better than a trial of a
 * few batches. */
static enum hvd_gpu_allreduce
choose_allreduce(const struct hvd_gpu_rendezvous *rendezvous, char *reason, size_t size)
{
    const char *obstacle = hvd_gpu_hierarchical_obstacle(rendezvous->team);
    int32_t told = rendezvous->offers[0].allreduce;

    if (obstacle[0] != '\0') {
        snprintf(reason, size, "%s", obstacle);
        return HVD_GPU_ALLREDUCE_FLAT;
    }
    for (int i = 1; i < rendezvous->team->layout->size; i++) {
        if (rendezvous->offers[i].allreduce != told) {
            snprintf(reason, size,
                     HVD_ENV_GPU_ALLREDUCE " or a variable of Horovod differs on ranks "
                                           "%d and %d",
                     rendezvous->team->ranks[0], rendezvous->team->ranks[i]);
            return HVD_GPU_ALLREDUCE_FLAT;
        }
    }
    snprintf(reason, size, "%s",
             told == HVD_GPU_ALLREDUCE_UNSET ? "the default"
                                             : HVD_ENV_GPU_ALLREDUCE
                 " or a variable of Horovod");
    return told == HVD_GPU_ALLREDUCE_UNSET ? HVD_GPU_ALLREDUCE_FLAT
                                           : (enum hvd_gpu_allreduce)told;
}

/* Returns true and writes the reason to text if a member cannot or must not use UCX on
 * GPU memory. Returns false if it can. */
static bool find_direct_obstacle(const struct hvd_gpu_rendezvous *rendezvous, int member,
                                 char *text, size_t size)
{
    const struct hvd_gpu_offer *offer = &rendezvous->offers[member];
    int rank = rendezvous->team->ranks[member];

    if (offer->direct == HVD_GPU_DIRECT_OFF) {
        snprintf(text, size, HVD_ENV_GPU_DIRECT "=off on rank %d", rank);
    } else if (offer->ucx_version == 0) {
        snprintf(text, size, "rank %d on %s uses TCP between nodes, not UCX", rank,
                 hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if ((offer->identity.network & HVD_GPU_NET_UCX_CUDA) == 0) {
        snprintf(
            text, size,
            "UCX %d.%d of rank %d on %s has no CUDA support (run hvd-info --check there)",
            offer->ucx_version / 10000, offer->ucx_version / 100 % 100, rank,
            hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if (!offer->identity.orders_writes) {
        snprintf(text, size,
                 "the GPU of rank %d on %s does not order GPUDirect RDMA writes, so it "
                 "could read stale data",
                 rank, hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if (!offer->identity.has_kernels) {
        snprintf(text, size, "rank %d on %s has no kernels (run hvd-info --check there)",
                 rank, hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else {
        return false;
    }
    return true;
}

/* Each chunk is cut into one share per node, and each rank sends one message per share
 * and other node, twice: with more nodes than this, 2 MiB become messages of less than
 * 128 KiB, and their number grows with the square of the nodes. */
enum {
    MOST_DIRECT_NODES = 16,
};

/* Like find_direct_obstacle, for the whole set. is_wanted: HVD_GPU_DIRECT=on outranks the
 * estimate of how many nodes are too many. */
static bool find_set_obstacle(const struct hvd_gpu_rendezvous *rendezvous, bool is_wanted,
                              char *text, size_t size)
{
    const struct hvd_layout *layout = rendezvous->team->layout;

    if (!is_wanted && layout->nodes > MOST_DIRECT_NODES) {
        snprintf(text, size, "the process set has %d nodes, more than %d", layout->nodes,
                 MOST_DIRECT_NODES);
        return true;
    }
    for (int i = 0; i < layout->size; i++) {
        if (find_direct_obstacle(rendezvous, i, text, size)) {
            return true;
        }
    }
    return false;
}

/* Returns the first rank with HVD_GPU_DIRECT=on, or -1. */
static int find_direct_asker(const struct hvd_gpu_rendezvous *rendezvous)
{
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (rendezvous->offers[i].direct == HVD_GPU_DIRECT_ON) {
            return rendezvous->team->ranks[i];
        }
    }
    return -1;
}

static void say_direct(const struct hvd_gpu_run *run, const char *obstacle, int asker)
{
    int set = run->set->id;

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
                "process set %d: GPU memory or pinned host memory between nodes, "
                "whichever is faster: the UCX of all ranks supports CUDA",
                set);
    }
}

static bool enter_device(void *context)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    const struct hvd_gpu_pool *pool = context;
    bool has_entered = pool->module->enter(pool->device);

    if (!has_entered && !atomic_flag_test_and_set(&is_told)) {
        hvd_log(HVD_LOG_WARN,
                "cannot make the GPU's CUDA context current for UCX: transfers "
                "of GPU memory may fail");
    }
    return has_entered;
}

static void leave_device(void *context)
{
    const struct hvd_gpu_pool *pool = context;

    pool->module->leave(pool->device);
}

static void add_candidate(struct hvd_gpu_set *set, enum hvd_gpu_allreduce algorithm)
{
    set->candidates[set->candidate_count++] = algorithm;
}

/* Determines the algorithms to choose from: flat first, then the hierarchical ones. */
static int find_candidates(struct hvd_gpu_run *run,
                           const struct hvd_gpu_rendezvous *rendezvous,
                           enum hvd_gpu_allreduce chosen, struct hvd_error *err)
{
    const struct hvd_net_scope scope = {
        .enter = enter_device, .leave = leave_device, .context = run->gpu->pool};
    int asker = find_direct_asker(rendezvous);
    char obstacle[256] = "";
    bool has_obstacle =
        find_set_obstacle(rendezvous, asker >= 0, obstacle, sizeof(obstacle));

    if (has_obstacle && asker >= 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        HVD_ENV_GPU_DIRECT
                        "=on on rank %d, but GPU memory cannot be sent between nodes: %s",
                        asker, obstacle);
    }
    if (chosen == HVD_GPU_ALLREDUCE_AUTO) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_FLAT);
    }
    if (asker < 0) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_HIERARCHICAL);
    }
    if (!has_obstacle) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_DIRECT);
        hvd_net_use_scope(run->team->net, &scope);
    }
    run->set->allreduce =
        run->set->candidate_count > 1 ? HVD_GPU_ALLREDUCE_AUTO : run->set->candidates[0];
    say_direct(run, obstacle, asker);
    return 0;
}

void hvd_gpu_log_unused_direct(const struct hvd_gpu_run *run,
                               const struct hvd_gpu_rendezvous *rendezvous,
                               const char *reason)
{
    int asker = find_direct_asker(rendezvous);

    if (asker >= 0 && run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: " HVD_ENV_GPU_DIRECT
                "=on on rank %d has no effect, the algorithm is not hierarchical: %s",
                run->set->id, asker, reason);
    }
}

int hvd_gpu_candidates_agree(struct hvd_gpu_run *run,
                             const struct hvd_gpu_rendezvous *rendezvous,
                             struct hvd_error *err)
{
    const struct hvd_team *team = run->team;
    struct hvd_gpu_set *set = run->set;
    struct hvd_gpu_pool *pool = run->gpu->pool;
    int leader = hvd_layout_rank(team->layout, team->node, 0);
    enum hvd_gpu_allreduce chosen = HVD_GPU_ALLREDUCE_FLAT;
    char reason[128] = "";
    int status;

    if (team->layout->nodes > 1) {
        chosen = choose_allreduce(rendezvous, reason, sizeof(reason));
    }
    say_allreduce(run, chosen, reason);
    set->allreduce = chosen;
    if (chosen == HVD_GPU_ALLREDUCE_FLAT) {
        hvd_gpu_log_unused_direct(run, rendezvous, reason);
        return 0;
    }
    status = find_candidates(run, rendezvous, chosen, err);
    if (status != 0) {
        return status;
    }
    status = hvd_gpu_inter_node_create(team, rendezvous->boot, &set->inter_node, err);
    if (status != 0) {
        return status;
    }
    return pool->module->comm_create(pool->device, rendezvous->offers[leader].node_id,
                                     team->local_rank, team->local_size, &set->node_comm,
                                     err);
}
