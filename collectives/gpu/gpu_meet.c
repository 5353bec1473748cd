/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a process set show each other what they have of CUDA and NCCL; from that each decides
 * by itself, and all alike, whether the set's tensors go by NCCL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/env.h"
#include "gpu_binding/error.h"
#include "gpu_binding/log.h"

/* What a rank shows. */
struct face {
    struct hvd_gpu_card card;
    int32_t path; /* enum hvd_gpu_path */
    int32_t unused;
};

struct meeting {
    const struct face *faces; /* [size] */
    const struct hvd_team *team;
    const struct hvd_boot *boot;
};

int hvd_gpu_meet(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct face *face = calloc(1, sizeof(*face));
    bool makes_id = run->team->rank == 0;
    int status;

    if (face == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to meet the other ranks");
    }
    face->path = run->gpu->config.path;
    status = pool->module->identify(
        pool->device, makes_id && face->path != HVD_GPU_PATH_HOST, &face->card, err);
    run->shown = face;
    return status != 0 ? status : hvd_gpu_run_gather(run, face, sizeof(*face), err);
}

static const char *host_of(const struct meeting *meeting, int member)
{
    return meeting->boot->peers[meeting->team->ranks[member]].host;
}

/* NCCL refuses two ranks on one GPU, unless each is told to be on a host of its own. */
static int find_sharer(const struct meeting *meeting, int member)
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
static bool find_obstacle(const struct meeting *meeting, int member, char *text,
                          size_t size)
{
    const struct face *face = &meeting->faces[member];
    int rank = meeting->team->ranks[member];
    int sharer = find_sharer(meeting, member);

    if (face->path == HVD_GPU_PATH_HOST) {
        snprintf(text, size, HVD_ENV_GPU_PATH "=host on rank %d", rank);
    } else if (face->card.nccl_version == 0) {
        snprintf(text, size, "rank %d on %s has no NCCL (hvd-info --check there)", rank,
                 host_of(meeting, member));
    } else if (face->card.nccl_version != meeting->faces[0].card.nccl_version) {
        snprintf(text, size, "rank %d on %s has NCCL %d, rank %d on %s has %d", rank,
                 host_of(meeting, member), face->card.nccl_version,
                 meeting->team->ranks[0], host_of(meeting, 0),
                 meeting->faces[0].card.nccl_version);
    } else if (sharer >= 0) {
        snprintf(text, size,
                 "ranks %d and %d on %s share a GPU, which NCCL refuses unless each has "
                 "its own " HVD_ENV_NCCL_HOSTID,
                 meeting->team->ranks[sharer], rank, host_of(meeting, member));
    } else {
        return false;
    }
    return true;
}

static bool is_forced(const struct meeting *meeting)
{
    for (int i = 0; i < meeting->team->layout->size; i++) {
        if (meeting->faces[i].path == HVD_GPU_PATH_NCCL) {
            return true;
        }
    }
    return false;
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

static int decide(struct hvd_gpu_run *run, const struct meeting *meeting,
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
    if (at == size) {
        status = pool->module->comm_create(pool->device, meeting->faces[0].card.id,
                                           run->team->rank, size, &run->peers->comm, err);
    }
    if (status == 0) {
        say(run, obstacle, at < size && meeting->faces[at].path == HVD_GPU_PATH_HOST);
    }
    return status;
}

int hvd_gpu_meet_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct meeting meeting = {
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
