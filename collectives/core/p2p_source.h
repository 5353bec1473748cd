/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives (p2p/p2p.h) as a source (loop.h): takes submissions, and reports
 * when messages have ended. They bypass the agreement.
 *
 * Most jobs never send, so struct hvd_p2p is created late: by the first send or receive
 * of this rank, or by the first message that another rank sends to it. Until then, this
 * source polls only the word of bits in which ranks of the node announce mail (mail.h):
 * at most every 50 us, and before this rank sleeps. Senders set a bit, then wake it.
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

/* Must be zeroed before use. */
struct hvd_p2p_source {
    struct hvd_p2p *p2p; /* NULL: not open */
    bool is_over; /* the job has failed or ended: p2p is not created any more */
    struct hvd_gpu_p2p copies; /* copies of tensors between the GPU and the host */
    bool wants_flush; /* flush when no message waits for its copy to the host */
};

static inline bool hvd_p2p_source_is_open(const struct hvd_p2p_source *p2p_source)
{
    return p2p_source->p2p != NULL;
}

/* Registers the source; p2p may be created from now on. Call it after the network is
 * created and before it is connected. */
void hvd_p2p_source_open(struct hvd_job *job);

/* Starts the submitted messages. Returns true if there were any. */
bool hvd_p2p_source_start(struct hvd_job *job);

/* Creates p2p if a rank of this node has sent a message. */
void hvd_p2p_source_look(struct hvd_job *job);

/* has_pending: whether messages are in flight, if the source is open. is_moving: whether
 * the data of any message are being moved. */
bool hvd_p2p_source_has_pending(const struct hvd_job *job);
bool hvd_p2p_source_is_moving(const struct hvd_job *job);

/* Starts the sends whose tensors have been copied from the GPU, and launches the receives
 * whose tensors have been copied to it. Sets *moved if there were any. Returns 0, or a
 * status after which the job must end. */
int hvd_p2p_source_progress_copies(struct hvd_job *job, bool *moved,
                                   struct hvd_error *err);
bool hvd_p2p_source_is_copying(const struct hvd_job *job);

/* Whether sends and receives cannot go on, so that the next poll ends the job with the
 * reason. */
bool hvd_p2p_source_has_failed(const struct hvd_job *job);

/* Ends the messages of a set that has been aborted. */
void hvd_p2p_source_abort_set(struct hvd_job *job, const struct hvd_set *set);

#endif
