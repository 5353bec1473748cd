/* SPDX-License-Identifier: Apache-2.0 */
/* Messages (p2p/p2p.h) as a source (loop.h): submissions go in, ends come out. They pass
 * by the agreement.
 *
 * Most jobs never send: messages are opened by the first send or receive of this rank, or
 * by the first envelope for it. Until then nothing of them is polled but the word of bits
 * in which ranks of the node announce mail (mail.h), at most every 50 us and before this
 * rank sleeps. They set a bit, then ring.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_P2P_SOURCE_H
#define HVD_P2P_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/gpu/gpu_p2p.h"
#include "gpu_binding/base/error.h"

struct hvd_job;
struct hvd_p2p;
struct hvd_set;

/* Zeroed at first. */
struct hvd_p2p_source {
    struct hvd_p2p *p2p; /* NULL: not open */
    bool is_over; /* dropped: not opened any more */
    struct hvd_gpu_p2p copies; /* between the GPU of messages and the host */
    bool wants_flush; /* once no message is held for its copy to the host */
};

static inline bool hvd_p2p_source_is_open(const struct hvd_p2p_source *p2p_source)
{
    return p2p_source->p2p != NULL;
}

/* From now on they can be opened. When the network is made, and before it is
 * connected. */
void hvd_p2p_source_open(struct hvd_job *job);

/* Starts what has been submitted. True if there was something. */
bool hvd_p2p_source_start(struct hvd_job *job);

/* Opens them if a rank of this node has written. */
void hvd_p2p_source_look(struct hvd_job *job);

/* Some are under way, or submitted; some of these are being moved. */
bool hvd_p2p_source_has_pending(const struct hvd_job *job);
bool hvd_p2p_source_is_moving(const struct hvd_job *job);

/* Starts and launches the messages whose tensors have been copied from and to the GPU;
 * *moved if there was one. Returns 0, or a status after which the job must end. */
int hvd_p2p_source_progress_copies(struct hvd_job *job, bool *moved,
                                   struct hvd_error *err);
bool hvd_p2p_source_is_copying(const struct hvd_job *job);

/* The job cannot go on, and the next poll says why. */
bool hvd_p2p_source_has_failed(const struct hvd_job *job);

/* The set has been aborted. */
void hvd_p2p_source_abort_set(struct hvd_job *job, const struct hvd_set *set);

#endif
