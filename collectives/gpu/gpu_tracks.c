/* SPDX-License-Identifier: Apache-2.0 */
/* Several streams for what goes by NCCL alone, and for each of them a communicator of
 * each process set (HOROVOD_NUM_NCCL_STREAMS).
 *
 * The batches of a set take turns on its tracks, in the order of agreement: so all its
 * ranks choose alike. A track's communicator connects with its first batch, as that of a
 * set does: all ranks come to it at the same place in the order of launches. What goes
 * within nodes first stays on the first stream, for there a batch keeps its turn to its
 * end, and nothing could be beside it. */
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/gpu_meeting.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_tracks_agree(const struct hvd_gpu_meeting *meeting, struct hvd_error *err)
{
    const struct hvd_gpu_face *faces = meeting->faces;

    for (int i = 1; i < meeting->team->layout->size; i++) {
        if (faces[i].tracks != faces[0].tracks) {
            return hvd_fail(
                err, HVD_ERR_MISMATCH,
                HVD_ENV_NCCL_STREAMS "=%d on rank %d on %s, but %d on rank %d "
                                     "on %s: give all ranks the same",
                faces[i].tracks, meeting->team->ranks[i], hvd_gpu_host_of(meeting, i),
                faces[0].tracks, meeting->team->ranks[0], hvd_gpu_host_of(meeting, 0));
        }
    }
    return 0;
}

int hvd_gpu_tracks_add(struct hvd_gpu_run *run, const unsigned char *id,
                       struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_peers *peers = run->peers;
    struct hvd_gpu_track *track = &peers->tracks[peers->track_count];
    int status = pool->module->comm_create(pool->device, id, run->team->rank,
                                           run->team->layout->size, &track->comm, err);

    peers->track_count += status == 0 ? 1 : 0;
    return status;
}

/* --- the other ones --- */

static int count_others(const struct hvd_gpu_run *run)
{
    return run->gpu->config.tracks - 1;
}

bool hvd_gpu_tracks_wanted(const struct hvd_gpu_run *run)
{
    return run->peers->track_count > 0 && count_others(run) > 0;
}

static int make_ids(const struct hvd_gpu_run *run, unsigned char *ids,
                    struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_card card;
    int status = 0;

    for (int i = 0; i < count_others(run) && status == 0; i++) {
        status = pool->module->identify(pool->device, true, &card, err);
        if (status == 0) {
            memcpy(ids + (size_t)i * HVD_GPU_ID_BYTES, card.id, HVD_GPU_ID_BYTES);
        }
    }
    return status;
}

int hvd_gpu_tracks_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    size_t bytes = (size_t)count_others(run) * HVD_GPU_ID_BYTES;
    unsigned char *ids = calloc(1, bytes);
    int status = ids == NULL
                     ? hvd_fail(err, HVD_ERR_NOMEM, "no memory to meet the other ranks")
                 : run->team->rank == 0 ? make_ids(run, ids, err)
                                        : 0;

    free(run->shown);
    run->shown = ids;
    return status != 0 ? status : hvd_gpu_run_tell(run, ids, bytes, err);
}

int hvd_gpu_tracks_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const unsigned char *ids = run->shown;
    int status = 0;

    for (int i = 0; i < count_others(run) && status == 0; i++) {
        status = hvd_gpu_tracks_add(run, ids + (size_t)i * HVD_GPU_ID_BYTES, err);
    }
    hvd_gpu_run_end_gather(run);
    return status;
}

/* A trial goes by the first one: connecting another is no part of what it measures. */
void hvd_gpu_tracks_take(struct hvd_gpu_run *run)
{
    struct hvd_gpu_peers *peers = run->peers;

    run->track = run->tried != HVD_GPU_ALLREDUCE_AUTO
                     ? 0
                     : (int)(peers->tracked++ % (uint64_t)peers->track_count);
}
