/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of tensors on GPUs (p2p/messages.h), which go through pinned host memory:
 *
 *   send       the tensor is copied to the host, and sent from there once the copy is done
 *   receive    the message is received on the host and copied to the tensor; the request is launched
 *              with that copy, so that the caller's stream waits for it, and no thread
 *
 * ncclSend and ncclRecv would need both ranks to launch the same messages in the same order, in the
 * one order of all of NCCL's work. Messages have no such order: a receive may be from any rank, tags
 * choose among messages, and a rank may start a receive long before or after the other rank sends.
 *
 * Threads: the progress lock is held, but for what says otherwise. */
#ifndef HVD_GPU_MESSAGES_H
#define HVD_GPU_MESSAGES_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_engine;
struct hvd_entry;
struct hvd_gpu_message;

/* In the order in which they came; zeroed at first. */
struct hvd_gpu_message_row {
    struct hvd_gpu_message *first;
    struct hvd_gpu_message *last;
};

/* Zeroed at first. */
struct hvd_gpu_messages {
    struct hvd_gpu_message_row sends; /* not sent yet */
    struct hvd_gpu_message_row
        received; /* their copies to the GPU are not launched yet */
    bool wants_flush; /* when all are sent */
};

/* A message is to be started. True: its tensor is copied to the host first, or it must not overtake one
 * for which that is under way; then progress starts it. False: the caller starts it. */
bool hvd_gpu_messages_hold(struct hvd_engine *engine, struct hvd_entry *entry);

/* A message has been received. True: it is copied to the GPU; then progress launches the request. False:
 * the request ends now. */
bool hvd_gpu_messages_return(struct hvd_engine *engine, struct hvd_entry *entry);

/* Starts and launches what has been copied; *moved if there was something. Returns 0, or a status
 * after which the job must end. */
int hvd_gpu_messages_progress(struct hvd_engine *engine, bool *moved,
                              struct hvd_error *err);

/* Nothing of the above is under way. */
bool hvd_gpu_messages_are_idle(const struct hvd_engine *engine);

/* Ends all. */
void hvd_gpu_messages_drop(struct hvd_engine *engine, int status, const char *text);

#endif
