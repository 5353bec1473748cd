/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of tensors on GPUs (p2p/p2p.h), which go through pinned host memory:
 *
 *   send       the tensor is copied to the host, and sent from there once the copy is done
 *   receive    the message is received on the host and copied to the tensor; the request is launched
 *              with that copy, so that the caller's stream waits for it, and no thread
 *
 * ncclSend and ncclRecv would need both ranks to launch the same messages in the same
 * order, in the one order of all of NCCL's work. Messages have no such order: a receive
 * may be from any rank, tags choose among messages, and a rank may start a receive long
 * before or after the other rank sends.
 *
 * Threads: the progress lock is held, unless a function says otherwise. */
#ifndef HVD_GPU_P2P_H
#define HVD_GPU_P2P_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_entry;
struct hvd_gpu_p2p_item;
struct hvd_gpu_runtime;

/* In the order in which they came; zeroed at first. */
struct hvd_gpu_p2p_row {
    struct hvd_gpu_p2p_item *first;
    struct hvd_gpu_p2p_item *last;
};

/* Zeroed at first, but for gpu. */
struct hvd_gpu_p2p {
    struct hvd_gpu_runtime *gpu; /* borrowed */
    struct hvd_gpu_p2p_row sends; /* not sent yet */
    /* Their copies to the GPU are not launched yet. */
    struct hvd_gpu_p2p_row received;
};

/* Whether a message must not be started yet: its tensor is copied to the host first, or
 * it would overtake one whose copy is under way. hold begins the copy; it may fail. */
bool hvd_gpu_p2p_must_hold(const struct hvd_gpu_p2p *messages,
                           const struct hvd_entry *entry);
int hvd_gpu_p2p_hold(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                     struct hvd_error *err);

/* Whether a message that has been received on the host is copied to the GPU. return
 * begins the copy; it may fail. */
bool hvd_gpu_p2p_must_return(const struct hvd_entry *entry);
int hvd_gpu_p2p_return(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                       struct hvd_error *err);

/* 0 and the next message whose tensor is on the host, to be started; HVD_INPROGRESS:
 * there is none; or a status after which the job must end. */
int hvd_gpu_p2p_next_held(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                          struct hvd_error *err);

/* The same of the next message whose copy to the GPU is launched: entry->done is its
 * end. */
int hvd_gpu_p2p_next_returned(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                              struct hvd_error *err);

/* Some are held; some are being returned; neither. */
bool hvd_gpu_p2p_are_held(const struct hvd_gpu_p2p *messages);
bool hvd_gpu_p2p_are_returning(const struct hvd_gpu_p2p *messages);
bool hvd_gpu_p2p_are_idle(const struct hvd_gpu_p2p *messages);

/* Forgets a message, and returns its entry, which the caller ends; NULL: there is none
 * left. */
struct hvd_entry *hvd_gpu_p2p_drop(struct hvd_gpu_p2p *messages);

/* Finds the host memory that the message of a GPU tensor passes through; the entry owns
 * it. The GPU is open. Any thread. */
int hvd_gpu_p2p_find_memory(struct hvd_gpu_runtime *gpu, struct hvd_entry *entry,
                            struct hvd_error *err);

#endif
