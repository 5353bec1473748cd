/* SPDX-License-Identifier: Apache-2.0 */
/* The control network: a tree of authenticated stream sockets among the ranks of a job, for
 * small messages, and for knowing at once who died.
 *
 *   node leaders (lowest rank of each node) form a tree over TCP, rank 0 is its root;
 *   the other ranks of a node hang on their leader by a unix socket, over which descriptors
 *   (shared memory, doorbells) travel too.
 *
 * A closed socket names the rank at its other end. The rank that sees it tells its neighbours,
 * they tell theirs: every rank learns it in O(log nodes) hops. A host that vanishes is noticed
 * by its silence, after 4 s (wire/socket.h). A forked child drops its copies (fork_close.h).
 *
 * Threads: one thread at a time for all functions (the engine's lock). */
#ifndef HVD_CONTROL_H
#define HVD_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/boot.h"

struct hvd_control;

#define HVD_CONTROL_PARENT (-1)

/* A message from a neighbour, or the end of the job. */
struct hvd_control_event {
    enum {
        HVD_CONTROL_MESSAGE, /* from, type, payload, bytes */
        HVD_CONTROL_ABORT, /* rank, text: why the job ends; once, and nothing after it */
    } kind;
    int from; /* MESSAGE: a child's index in the order of hvd_control_children, or
                 HVD_CONTROL_PARENT */
    uint32_t type;
    const void *payload; /* borrowed, valid in the handler only; aligned to 8 */
    size_t bytes;
    int rank; /* ABORT: who died or gave up */
    const char *text;
};

/* May call everything but connect, progress and destroy. */
typedef void (*hvd_control_handler)(void *context, const struct hvd_control_event *event);

/* Opens the listening sockets (non-blocking, close-on-exec). The caller owns *out. */
int hvd_control_create(struct hvd_control **out, struct hvd_error *err);

/* This rank's addresses for its card; borrowed, valid until destroy. */
void hvd_control_address(const struct hvd_control *control, const void **address,
                         size_t *bytes);

/* Builds the tree: connects, authenticates both sides with the job secret, within the time
 * limit; addresses[rank] is what hvd_control_address gave there. Collective; returns when the
 * whole tree is up. Fails with HVD_ERR_TIMEOUT or HVD_ERR_PEER and a text that names the rank
 * and host that is missing or died, the same on all ranks that can be told; then only destroy
 * is left to do. Also shares a descriptor of the node's leader with its local ranks, and
 * one descriptor of each local rank with all others of the node:
 *   leader_fd   in: on a node's leader, a descriptor to share (or -1);
 *               out: elsewhere, this rank's copy, which the caller owns (or -1)
 *   local_fd    in: one descriptor of this rank (kept by the caller)
 *   peer_fds    out: [local size] copies of the local ranks' local_fd, which the caller
 *               owns; -1 at this rank's own place
 * boot is borrowed until destroy. */
int hvd_control_connect(struct hvd_control *control, const struct hvd_boot *boot,
                        const void *const *addresses, const size_t *address_bytes,
                        int timeout_ms, int *leader_fd, int local_fd, int *peer_fds,
                        struct hvd_error *err);

/* The rank that is the reason why connect failed, or why the job ends; -1: none is known. */
int hvd_control_culprit(const struct hvd_control *control);

/* Queues a message to the parent (no parent on rank 0: HVD_ERR_STATE), to every child, or to
 * the children on other nodes.
 * Copied, written at once as far as the socket takes it; never blocks. type is below
 * 0x40000000, bytes at most 64 MiB. What is sent to a rank that has died is dropped: the ABORT
 * event tells. Returns 0 or HVD_ERR_NOMEM. */
int hvd_control_send_up(struct hvd_control *control, uint32_t type, const void *payload,
                        size_t bytes);
int hvd_control_send_down(struct hvd_control *control, uint32_t type, const void *payload,
                          size_t bytes);
int hvd_control_send_to_nodes(struct hvd_control *control, uint32_t type,
                              const void *payload, size_t bytes);

/* The same to one child, by its index. */
int hvd_control_send_child(struct hvd_control *control, int child, uint32_t type,
                           const void *payload, size_t bytes);

/* The neighbours in the tree: the parent's rank, or -1; the number of children, and their ranks in
 * the order of hvd_tree_children (borrowed). */
int hvd_control_parent(const struct hvd_control *control);
int hvd_control_children(const struct hvd_control *control, const int **ranks);

/* Writes what is queued, reads what is there, calls handler for each event; never blocks.
 * Returns the number of events handled. */
int hvd_control_progress(struct hvd_control *control, hvd_control_handler handler,
                         void *context);

/* An epoll descriptor to sleep on: readable when progress has something to do. */
int hvd_control_fd(const struct hvd_control *control);

/* Tells every rank that `rank` is the reason why the job ends. This rank's handler gets the
 * ABORT event too, at the next progress. Only the first reason counts. */
void hvd_control_abort(struct hvd_control *control, int rank, const char *text);

/* From now on a neighbour that closes its socket is no failure (shutdown was agreed). */
void hvd_control_expect_close(struct hvd_control *control);

/* Writes out what is queued, at most timeout_ms long, then closes. NULL is fine. */
void hvd_control_destroy(struct hvd_control *control, int timeout_ms);

#endif
