/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a process set know when they have met, shared by gpu_meet.c and
 * gpu_meet_nodes.c. */
#ifndef HVD_GPU_MEETING_H
#define HVD_GPU_MEETING_H

#include "collectives/gpu/gpu_run_state.h"

/* What a rank shows. */
struct hvd_gpu_face {
    struct hvd_gpu_card card;
    int32_t path; /* enum hvd_gpu_path */
    int32_t allreduce; /* enum hvd_gpu_allreduce */
    int32_t direct; /* enum hvd_gpu_direct */
    int32_t ucx_version; /* 0: none */
    int64_t pack_below; /* bytes, or HVD_GPU_PACK_AUTO */
    unsigned char node_id[HVD_GPU_ID_BYTES]; /* of its node; zero unless it makes one */
};

struct hvd_gpu_meeting {
    const struct hvd_gpu_face *faces; /* [size] */
    const struct hvd_team *team;
    const struct hvd_boot *boot;
};

const char *hvd_gpu_host_of(const struct hvd_gpu_meeting *meeting, int member);

/* Why a set cannot add up within nodes first, "" when it can: of what all ranks know before
 * they meet. */
const char *hvd_gpu_shape_obstacle(const struct hvd_team *team);

/* Once it is clear that a set goes by NCCL: its ways over several nodes, and what they need.
 * Fills in run->peers. */
int hvd_gpu_join_nodes(struct hvd_gpu_run *run, const struct hvd_gpu_meeting *meeting,
                       struct hvd_error *err);

/* Says that HVD_GPU_DIRECT=on, where a rank has it, is of no use to this set, and why. */
void hvd_gpu_direct_unused(const struct hvd_gpu_run *run,
                           const struct hvd_gpu_meeting *meeting, const char *reason);

/* Once it is clear that a set goes by NCCL: which of its tensors are packed, where ranks
 * were told so: of different numbers the largest counts for all. Fills in run->peers. */
void hvd_gpu_packing_agree(struct hvd_gpu_run *run,
                           const struct hvd_gpu_meeting *meeting);

#endif
