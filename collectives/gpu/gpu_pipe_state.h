/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a pipe, shared by its order (gpu_pipe.c) and what its pieces do
 * (gpu_piece.c). */
#ifndef HVD_GPU_PIPE_STATE_H
#define HVD_GPU_PIPE_STATE_H

#include "collectives/gpu/gpu_exchange.h"
#include "collectives/gpu/gpu_pipe.h"

/* What a piece has under way. */
struct hvd_gpu_jobs {
    struct hvd_gpu_job reduce;
    struct hvd_gpu_job fetch;
    struct hvd_gpu_job back;
    struct hvd_gpu_job gather;
};

struct hvd_gpu_pipe {
    struct hvd_gpu_pipe_config config;
    int64_t bytes; /* of all tensors in the type they go in, one behind the other */
    int64_t piece_bytes; /* but the last */
    int64_t part_bytes; /* most of a part */
    int64_t count; /* pieces, at least 1 */
    int64_t begun; /* reduced and fetched */
    int64_t added; /* on their way back */
    struct hvd_gpu_room *device; /* [HVD_GPU_WINDOW][parts] parts; NULL without comm */
    struct hvd_gpu_room *host; /* [HVD_GPU_WINDOW] parts; NULL: direct */
    struct hvd_gpu_jobs window[HVD_GPU_WINDOW];
    /* Direct: */
    struct hvd_gpu_exchange *exchanges[HVD_GPU_WINDOW];
    struct hvd_gpu_room *versions; /* [HVD_GPU_WINDOW] of room_bytes, on the device */
    int64_t room_bytes;
    struct hvd_entry entry; /* of run */
    struct hvd_run *run; /* adds up piece `added` */
};

/* What a piece is: bytes [begin, begin + bytes) of the tensors, in parts of part_bytes. */
struct hvd_gpu_piece {
    int64_t begin;
    int64_t bytes;
    int64_t part_bytes; /* the last parts may go beyond the piece */
    int64_t own_bytes; /* of this rank's part, in the piece */
    char *device;
    char *part; /* this rank's, on the device */
    char *host; /* NULL: direct */
    struct hvd_gpu_jobs *jobs;
    struct hvd_gpu_exchange *exchange; /* NULL: through the host */
    char *versions; /* of exchange */
};

/* Of a part; NCCL likes them aligned. */
enum {
    HVD_GPU_PART_ALIGNMENT = 256
};

/* bytes / unit, rounded up, times unit. */
int64_t hvd_gpu_rounded_up(int64_t bytes, int64_t unit);

int64_t hvd_gpu_count_of(const struct hvd_proposal *proposal); /* elements */

/* Once the pipe has its memory. */
struct hvd_gpu_piece hvd_gpu_piece_of(struct hvd_gpu_pipe *pipe, int64_t number);

/* What comes from a joined rank: zeros, in fetched memory. */
void hvd_gpu_piece_zero(const struct hvd_gpu_pipe *pipe,
                        const struct hvd_gpu_piece *piece);

/* Its jobs up to where it is added up, and from there. */
int hvd_gpu_piece_bring(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                        struct hvd_error *err);
int hvd_gpu_piece_return(struct hvd_gpu_pipe *pipe, const struct hvd_gpu_piece *piece,
                         struct hvd_error *err);

#endif
