/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a process set show each other what they have of CUDA and NCCL; from that
 * each decides by itself, and all alike, whether the set's tensors go by NCCL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/gpu_meeting.h"
#include "collectives/gpu/gpu_routes.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* The first rank of each node makes the id that its node may need. */
static int make_node_id(const struct hvd_gpu_run *run, struct hvd_gpu_face *face,
                        struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_card card;
    bool is_needed = run->team->layout->nodes > 1 && run->team->local_rank == 0 &&
                     hvd_gpu_shape_obstacle(run->team)[0] == '\0' &&
                     face->path != HVD_GPU_PATH_HOST &&
                     face->allreduce != HVD_GPU_ALLREDUCE_FLAT;
    int status = is_needed ? pool->module->identify(pool->device, true, &card, err) : 0;

    if (is_needed && status == 0) {
        memcpy(face->node_id, card.id, sizeof(face->node_id));
    }
    return status;
}

static bool may_go_directly(const struct hvd_gpu_run *run)
{
    return run->team->net != NULL && hvd_net_has_cuda(run->team->net) &&
           run->gpu->config.direct != HVD_GPU_DIRECT_OFF;
}

int hvd_gpu_meet(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_face *face = calloc(1, sizeof(*face));
    bool makes_id = run->team->rank == 0;
    int status;

    if (face == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to meet the other ranks");
    }
    face->path = run->gpu->config.path;
    face->allreduce = run->gpu->config.allreduce;
    face->pack_below = run->gpu->config.pack_below;
    face->direct = run->gpu->config.direct;
    face->ucx_version = hvd_net_version();
    status = pool->module->identify(
        pool->device, makes_id && face->path != HVD_GPU_PATH_HOST, &face->card, err);
    status = status != 0 ? status : make_node_id(run, face, err);
    face->card.routes = hvd_gpu_routes_flags(&face->card) |
                        (may_go_directly(run) ? HVD_ROUTE_UCX_CUDA : 0);
    run->shown = face;
    return status != 0 ? status : hvd_gpu_run_gather(run, face, sizeof(*face), err);
}

/* NCCL refuses two ranks on one GPU, unless each is told to be on a host of its own. */
static int find_sharer(const struct hvd_gpu_meeting *meeting, int member)
{
    const struct hvd_layout *layout = meeting->team->layout;
    const struct hvd_gpu_card *card = &meeting->faces[member].card;

    for (int i = 0; i < member; i++) {
        const struct hvd_gpu_card *other = &meeting->faces[i].card;

        if (layout->node[i] == layout->node[member] && !card->has_host_id &&
            memcmp(card->uuid, other->uuid, sizeof(card->uuid)) == 0) {
            return i;
        }
    }
    return -1;
}

/* Why a member keeps the set from NCCL; false: it does not. */
static bool find_obstacle(const struct hvd_gpu_meeting *meeting, int member, char *text,
                          size_t size)
{
    const struct hvd_gpu_face *face = &meeting->faces[member];
    int rank = meeting->team->ranks[member];
    int sharer = find_sharer(meeting, member);

    if (face->path == HVD_GPU_PATH_HOST) {
        snprintf(text, size, HVD_ENV_GPU_PATH "=host on rank %d", rank);
    } else if (face->card.nccl_version == 0) {
        snprintf(text, size, "rank %d on %s has no NCCL (hvd-info --check there)", rank,
                 hvd_gpu_host_of(meeting, member));
    } else if (face->card.nccl_version != meeting->faces[0].card.nccl_version) {
        snprintf(text, size, "rank %d on %s has NCCL %d, rank %d on %s has %d", rank,
                 hvd_gpu_host_of(meeting, member), face->card.nccl_version,
                 meeting->team->ranks[0], hvd_gpu_host_of(meeting, 0),
                 meeting->faces[0].card.nccl_version);
    } else if (sharer >= 0) {
        snprintf(text, size,
                 "ranks %d and %d on %s share a GPU, which NCCL refuses unless each has "
                 "its own " HVD_ENV_NCCL_HOSTID,
                 meeting->team->ranks[sharer], rank, hvd_gpu_host_of(meeting, member));
    } else {
        return false;
    }
    return true;
}

static bool is_forced(const struct hvd_gpu_meeting *meeting)
{
    for (int i = 0; i < meeting->team->layout->size; i++) {
        if (meeting->faces[i].path == HVD_GPU_PATH_NCCL) {
            return true;
        }
    }
    return false;
}

static bool have_kernels(const struct hvd_gpu_meeting *meeting)
{
    for (int i = 0; i < meeting->team->layout->size; i++) {
        if (!meeting->faces[i].card.has_kernels) {
            return false;
        }
    }
    return true;
}

static void say(const struct hvd_gpu_run *run, const char *obstacle, bool is_chosen)
{
    int set = run->batch->header.set;

    if (run->team->rank != 0) {
        return;
    }
    if (obstacle[0] == '\0') {
        hvd_log(HVD_LOG_INFO, "process set %d: GPU tensors by NCCL %d", set,
                run->peers->nccl_version);
    } else {
        hvd_log(is_chosen ? HVD_LOG_INFO : HVD_LOG_WARN,
                "process set %d: GPU tensors go through host memory, which is slower: %s",
                set, obstacle);
    }
}

/* Not for each of many process sets. */
static bool is_worth_telling(const struct hvd_gpu_run *run)
{
    return run->peers->next == NULL || run->peers->set == HVD_SET_GLOBAL;
}

static void tell_routes(const struct hvd_gpu_run *run,
                        const struct hvd_gpu_meeting *meeting)
{
    int size = run->team->layout->size;
    const struct hvd_gpu_card **cards = calloc((size_t)size, sizeof(cards[0]));

    for (int i = 0; cards != NULL && i < size; i++) {
        cards[i] = &meeting->faces[i].card;
    }
    if (cards != NULL) {
        hvd_gpu_routes_tell(run->team, meeting->boot, run->gpu->pool->module, cards);
    }
    free(cards);
}

static int decide(struct hvd_gpu_run *run, const struct hvd_gpu_meeting *meeting,
                  struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    int size = run->team->layout->size, status = 0;
    char obstacle[256] = "";
    int at = 0;

    while (at < size && !find_obstacle(meeting, at, obstacle, sizeof(obstacle))) {
        at++;
    }
    if (at < size && is_forced(meeting)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        HVD_ENV_GPU_PATH "=nccl, but NCCL cannot be used: %s", obstacle);
    }
    run->peers->nccl_version = meeting->faces[0].card.nccl_version;
    run->peers->all_have_kernels = have_kernels(meeting);
    if (at == size) {
        status = pool->module->comm_create(pool->device, meeting->faces[0].card.id,
                                           run->team->rank, size, &run->peers->comm, err);
        hvd_gpu_packing_agree(run, meeting);
        status = status != 0 ? status : hvd_gpu_join_nodes(run, meeting, err);
    } else {
        hvd_gpu_direct_unused(run, meeting, obstacle);
    }
    if (status == 0) {
        say(run, obstacle, at < size && meeting->faces[at].path == HVD_GPU_PATH_HOST);
        if (run->peers->comm != NULL && is_worth_telling(run)) {
            tell_routes(run, meeting);
        }
    }
    return status;
}

int hvd_gpu_meet_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_meeting meeting = {
        .faces = run->gathered.result, .team = run->team, .boot = run->gpu->config.boot};
    int status;

    run->peers = calloc(1, sizeof(*run->peers));
    if (run->peers == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a process set's GPUs");
    }
    run->peers->set = run->batch->header.set;
    run->peers->next = run->gpu->peers;
    run->gpu->peers = run->peers;
    status = decide(run, &meeting, err);
    hvd_gpu_run_end_gather(run);
    return status;
}
