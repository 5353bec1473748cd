/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks (p2p/p2p.h) whose tensors are on GPUs. They go through pinned
 * host memory:
 *
 *   send       the tensor is copied to the host, and sent once the copy is done
 *   receive    the message is received on the host and copied to the tensor. The request
 *              counts as launched once the copy is launched: the caller's stream waits
 *              for the copy, but no thread does
 *
 * ncclSend and ncclRecv are not used: both ranks would have to launch the same messages
 * in the same order, relative to all their other work of NCCL. Messages have no such
 * order: a receive may accept any rank, tags select messages, and a rank may start a
 * receive long before or after the other rank sends.
 *
 * Threads: the progress lock is held, unless a function says otherwise. */
#ifndef HVD_GPU_P2P_H
#define HVD_GPU_P2P_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_entry;
struct hvd_gpu_p2p_item;
struct hvd_gpu_runtime;

/* Messages in order of submission; zeroed at first. */
struct hvd_gpu_p2p_row {
    struct hvd_gpu_p2p_item *first;
    struct hvd_gpu_p2p_item *last;
};

/* Zeroed at first, except for gpu. */
struct hvd_gpu_p2p {
    struct hvd_gpu_runtime *gpu; /* borrowed */
    struct hvd_gpu_p2p_row sends; /* held: not sent yet */
    /* received messages whose copies to the GPU are not launched yet */
    struct hvd_gpu_p2p_row received;
};

/* must_hold returns whether a send must wait: for the copy of its tensor to the host, or
 * because it would overtake a held message. hold begins the copy; it may fail. */
bool hvd_gpu_p2p_must_hold(const struct hvd_gpu_p2p *messages,
                           const struct hvd_entry *entry);
int hvd_gpu_p2p_hold(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                     struct hvd_error *err);

/* must_return returns whether a received message has to be copied to the GPU. return
 * begins the copy; it may fail. */
bool hvd_gpu_p2p_must_return(const struct hvd_entry *entry);
int hvd_gpu_p2p_return(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                       struct hvd_error *err);

/* Returns 0 and the next held message whose tensor is on the host, to be sent now;
 * HVD_INPROGRESS if there is none; or a failure that ends the job. */
int hvd_gpu_p2p_next_held(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                          struct hvd_error *err);

/* Returns the same for the next received message whose copy to the GPU is launched;
 * entry->done marks the end of the copy. */
int hvd_gpu_p2p_next_returned(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                              struct hvd_error *err);

/* are_held: whether any send is held. are_returning: whether any received message waits
 * until its copy to the GPU is launched. are_idle: neither. */
bool hvd_gpu_p2p_are_held(const struct hvd_gpu_p2p *messages);
bool hvd_gpu_p2p_are_returning(const struct hvd_gpu_p2p *messages);
bool hvd_gpu_p2p_are_idle(const struct hvd_gpu_p2p *messages);

/* Removes one message and returns its entry, which the caller ends; NULL if none is
 * left. */
struct hvd_entry *hvd_gpu_p2p_drop(struct hvd_gpu_p2p *messages);

/* Takes host memory for the message of a GPU tensor; the entry owns it. The GPU must be
 * open. Any thread. */
int hvd_gpu_p2p_find_memory(struct hvd_gpu_runtime *gpu, struct hvd_entry *entry,
                            struct hvd_error *err);

#endif
