/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of a process set: makes offers, and decides from all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/gpu_rendezvous.h"
#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "collectives/gpu/gpu_connectivity.h"
#include "collectives/set/set.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* The first rank of each node creates the NCCL id for the node's communicator. */
static int make_node_id(const struct hvd_gpu_run *run, struct hvd_gpu_offer *offer,
                        struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_identity identity;
    bool is_needed = run->team->layout->nodes > 1 && run->team->local_rank == 0 &&
                     hvd_gpu_hierarchical_obstacle(run->team)[0] == '\0' &&
                     offer->path != HVD_GPU_PATH_HOST &&
                     offer->allreduce != HVD_GPU_ALLREDUCE_UNSET &&
                     offer->allreduce != HVD_GPU_ALLREDUCE_FLAT;
    int status =
        is_needed ? pool->module->identify(pool->device, true, &identity, err) : 0;

    if (is_needed && status == 0) {
        memcpy(offer->node_id, identity.id, sizeof(offer->node_id));
    }
    return status;
}

static bool may_go_directly(const struct hvd_gpu_run *run)
{
    return run->team->net != NULL && hvd_net_has_cuda(run->team->net) &&
           run->gpu->config.direct != HVD_GPU_DIRECT_OFF;
}

int hvd_gpu_rendezvous_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_offer *offer = calloc(1, sizeof(*offer));
    bool makes_id = run->team->rank == 0;
    int status;

    if (offer == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a rendezvous");
    }
    offer->path = run->gpu->config.path;
    offer->allreduce = run->gpu->config.allreduce;
    offer->pack_below = run->gpu->config.pack_below;
    offer->direct = run->gpu->config.direct;
    offer->takes_windows = run->gpu->config.takes_windows ? 1 : 0;
    offer->one_kernel_bytes = run->gpu->config.one_kernel_bytes;
    offer->ucx_version = run->team->net != NULL ? hvd_net_ucx_version(run->team->net) : 0;
    run->offer = offer; /* the run frees it, even if the rest fails */
    status =
        pool->module->identify(pool->device, makes_id && offer->path != HVD_GPU_PATH_HOST,
                               &offer->identity, err);
    if (status != 0) {
        return status;
    }
    status = make_node_id(run, offer, err);
    if (status != 0) {
        return status;
    }
    offer->identity.network = hvd_gpu_network_flags(&offer->identity) |
                              (may_go_directly(run) ? HVD_GPU_NET_UCX_CUDA : 0);
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name, offer,
                                     sizeof(*offer), err);
}

/* Whether NCCL accepts ranks that share a GPU or are in its MIG slices: from 2.30 on, if
 * all ranks ask for it. */
static bool may_share(const struct hvd_gpu_rendezvous *rendezvous)
{
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (!rendezvous->offers[i].identity.may_share) {
            return false;
        }
    }
    return true;
}

/* Finds an earlier member on the same GPU; -1 if there is none. Unless may_share, NCCL
 * refuses two ranks on one GPU, even in two MIG slices, except if NCCL_HOSTID makes them
 * look like different hosts. */
static int find_sharer(const struct hvd_gpu_rendezvous *rendezvous, int member)
{
    const struct hvd_layout *layout = rendezvous->team->layout;
    const struct hvd_gpu_identity *identity = &rendezvous->offers[member].identity;

    for (int i = 0; i < member; i++) {
        const struct hvd_gpu_identity *other = &rendezvous->offers[i].identity;

        if (layout->node[i] == layout->node[member] && !identity->has_host_id &&
            memcmp(identity->bus_id, other->bus_id, sizeof(identity->bus_id)) == 0) {
            return i;
        }
    }
    return -1;
}

/* Returns true and writes the reason to text if a member cannot or must not use NCCL.
 * Returns false if it can. */
static bool find_obstacle(const struct hvd_gpu_rendezvous *rendezvous, int member,
                          char *text, size_t size)
{
    const struct hvd_gpu_offer *offer = &rendezvous->offers[member];
    int rank = rendezvous->team->ranks[member];
    int sharer = may_share(rendezvous) ? -1 : find_sharer(rendezvous, member);

    if (offer->path == HVD_GPU_PATH_HOST) {
        snprintf(text, size, HVD_ENV_GPU_PATH "=host on rank %d", rank);
    } else if (offer->identity.nccl_version == 0) {
        snprintf(text, size, "rank %d on %s has no NCCL (run hvd-info --check there)",
                 rank, hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if (offer->identity.nccl_version !=
               rendezvous->offers[0].identity.nccl_version) {
        snprintf(text, size, "rank %d on %s has NCCL %d, rank %d on %s has %d", rank,
                 hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member),
                 offer->identity.nccl_version, rendezvous->team->ranks[0],
                 hvd_gpu_member_host(rendezvous->team, rendezvous->boot, 0),
                 rendezvous->offers[0].identity.nccl_version);
    } else if (sharer >= 0) {
        snprintf(text, size,
                 "ranks %d and %d on %s share a GPU, or its MIG slices; NCCL 2.30 and "
                 "later allow that with " HVD_ENV_NCCL_MULTI_RANK_GPU "=1 on all ranks",
                 rendezvous->team->ranks[sharer], rank,
                 hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else {
        return false;
    }
    return true;
}

static bool is_forced(const struct hvd_gpu_rendezvous *rendezvous)
{
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (rendezvous->offers[i].path == HVD_GPU_PATH_NCCL) {
            return true;
        }
    }
    return false;
}

static bool have_kernels(const struct hvd_gpu_rendezvous *rendezvous)
{
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (!rendezvous->offers[i].identity.has_kernels) {
            return false;
        }
    }
    return true;
}

/* Whether NVLink switches may add (NVLink SHARP): every GPU is on such a switch, and a
 * node has several ranks, because this works only within nodes. */
static bool may_switch_add(const struct hvd_gpu_rendezvous *rendezvous)
{
    const struct hvd_layout *layout = rendezvous->team->layout;

    for (int i = 0; i < layout->size; i++) {
        if (!rendezvous->offers[i].identity.is_on_switch) {
            return false;
        }
    }
    return layout->size > layout->nodes;
}

static void say_choice(const struct hvd_gpu_run *run, const char *obstacle,
                       bool is_chosen)
{
    int set = run->batch->header.set;

    if (run->team->rank != 0) {
        return;
    }
    if (obstacle[0] == '\0') {
        hvd_log(HVD_LOG_INFO, "process set %d: GPU tensors by NCCL %d", set,
                run->set->nccl_version);
    } else {
        hvd_log(is_chosen ? HVD_LOG_INFO : HVD_LOG_WARN,
                "process set %d: GPU tensors go through host memory, which is slower: %s",
                set, obstacle);
    }
}

/* Whether to log how GPUs are connected: only for the first process set and for a set of
 * all ranks, to avoid a log line for each of many sets. */
static bool is_worth_telling(const struct hvd_gpu_run *run)
{
    return run->set->next == NULL ||
           run->batch->set->count == run->gpu->config.boot->size;
}

static void log_connectivity(const struct hvd_gpu_run *run,
                             const struct hvd_gpu_rendezvous *rendezvous)
{
    int size = run->team->layout->size;
    const struct hvd_gpu_identity **identities =
        calloc((size_t)size, sizeof(identities[0]));

    if (identities == NULL) {
        return;
    }
    for (int i = 0; i < size; i++) {
        identities[i] = &rendezvous->offers[i].identity;
    }
    hvd_gpu_connectivity_log(run->team, rendezvous->boot, run->gpu->pool->module,
                             identities);
    free(identities);
}

static int decide_way(struct hvd_gpu_run *run,
                      const struct hvd_gpu_rendezvous *rendezvous, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    int size = run->team->layout->size, status = 0;
    char obstacle[256] = "";
    int at = 0;

    while (at < size && !find_obstacle(rendezvous, at, obstacle, sizeof(obstacle))) {
        at++;
    }
    if (at < size && is_forced(rendezvous)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        HVD_ENV_GPU_PATH "=nccl, but NCCL cannot be used: %s", obstacle);
    }
    run->set->nccl_version = rendezvous->offers[0].identity.nccl_version;
    run->set->all_have_kernels = have_kernels(rendezvous);
    run->set->may_switch_add = may_switch_add(rendezvous);
    if (at == size) {
        status =
            pool->module->comm_create(pool->device, rendezvous->offers[0].identity.id,
                                      run->team->rank, size, &run->set->comm, err);
        hvd_gpu_packing_agree(run, rendezvous);
        hvd_gpu_window_agree(run, rendezvous);
        hvd_gpu_inbox_agree(run, rendezvous);
        if (status == 0) {
            status = hvd_gpu_packing_reserve(run, err);
        }
        if (status == 0) {
            status = hvd_gpu_candidates_agree(run, rendezvous, err);
        }
    } else {
        hvd_gpu_log_unused_direct(run, rendezvous, obstacle);
    }
    if (status == 0) {
        say_choice(run, obstacle,
                   at < size && rendezvous->offers[at].path == HVD_GPU_PATH_HOST);
        if (run->set->comm != NULL && is_worth_telling(run)) {
            log_connectivity(run, rendezvous);
        }
    }
    return status;
}

int hvd_gpu_rendezvous_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_rendezvous rendezvous = {
        .offers = hvd_gpu_host_gather_result(&run->gather),
        .team = run->team,
        .boot = run->gpu->config.boot};
    int status;

    run->set = calloc(1, sizeof(*run->set));
    if (run->set == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the GPUs of a process set");
    }
    run->set->id = run->batch->set->id;
    run->batch->set->gpu = run->set;
    run->set->next = run->gpu->sets;
    run->gpu->sets = run->set;
    status = decide_way(run, &rendezvous, err);
    hvd_gpu_host_gather_end(&run->gather);
    return status;
}
