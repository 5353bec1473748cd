/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors of a batch are moved together for NCCL: small ones, but from what size on is it
 * faster to leave them where they are? */
#include <inttypes.h>

#include "collectives/gpu/gpu_meeting.h"
#include "gpu_binding/env.h"
#include "gpu_binding/log.h"

/* A guess: two passes through the device's memory against some microseconds of NCCL. */
static const int64_t usual_bytes = 1 << 20;

/* Whose number counts for all, -1: nobody has one. */
static int find_asker(const struct hvd_gpu_meeting *meeting)
{
    int64_t most = HVD_GPU_PACK_AUTO;
    int asker = -1;

    for (int i = 0; i < meeting->team->layout->size; i++) {
        if (meeting->faces[i].pack_below > most) {
            most = meeting->faces[i].pack_below;
            asker = i;
        }
    }
    return asker;
}

void hvd_gpu_packing_agree(struct hvd_gpu_run *run, const struct hvd_gpu_meeting *meeting)
{
    int asker = find_asker(meeting);

    run->peers->pack_below = asker < 0 ? usual_bytes : meeting->faces[asker].pack_below;
    if (asker >= 0 && meeting->team->rank == 0) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: tensors below %" PRId64
                " bytes are packed for NCCL: " HVD_ENV_GPU_PACK_BELOW " on rank %d",
                run->peers->set, run->peers->pack_below, meeting->team->ranks[asker]);
    }
}
