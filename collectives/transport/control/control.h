/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree: authenticated stream sockets among the ranks of a job, for small
 * messages, and to detect at once which rank died.
 *
 *   Node leaders (the lowest rank of each node) form a tree over TCP with rank 0 at its
 *   root. The other ranks of a node connect to their leader by a unix socket, which also
 *   passes descriptors (shared memory, eventfds).
 *
 * If a rank dies, its sockets close. A neighbour that sees this tells its neighbours,
 * which tell theirs: every rank learns of it within O(log nodes) hops. A host that
 * vanishes is detected by its silence, after 4 s (sock/socket.h). A forked child closes
 * its copies of the sockets (fork_close.h).
 *
 * Threads: one thread at a time for all functions, under the progress lock. */
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
        HVD_CONTROL_MESSAGE, /* sets from, type, payload and bytes */
        /* sets rank and text, the reason why the job ends; comes once, and no event
         * follows */
        HVD_CONTROL_ABORT,
    } kind;
    /* a child's index in the order of hvd_control_children, or HVD_CONTROL_PARENT */
    int from;
    uint32_t type;
    const void *payload; /* borrowed, valid during the handler only; aligned to 8 */
    size_t bytes;
    int rank; /* ABORT: the rank that died or gave up */
    const char *text;
};

/* The handler may call all functions except connect, progress and destroy. */
typedef void (*hvd_control_handler)(void *context, const struct hvd_control_event *event);

/* Opens the listening sockets (non-blocking, close-on-exec). The caller owns *out. */
int hvd_control_create(struct hvd_control **out, struct hvd_error *err);

/* Returns the addresses of this rank, for its card; borrowed, valid until destroy. */
void hvd_control_address(const struct hvd_control *control, const void **address,
                         size_t *bytes);

/* Builds the tree: connects all ranks; both sides of each link authenticate with the job
 * secret. addresses[rank] is the result of hvd_control_address on that rank. Collective:
 * returns when the whole tree is up. Fails with HVD_ERR_TIMEOUT or HVD_ERR_PEER and a
 * text that names the rank and host that is missing or died, the same on all ranks that
 * can be reached; then only destroy may be called. Also shares a descriptor of the node's
 * leader with its local ranks, and one descriptor of each local rank with all other ranks
 * of the node:
 *   leader_fd   in: on the leader of a node, a descriptor to share (or -1);
 *               out: on other ranks, a copy that the caller owns (or -1)
 *   local_fd    in: a descriptor of this rank, which the caller keeps
 *   peer_fds    out: [local size] copies of the local ranks' local_fd, which the caller
 *               owns; -1 at the index of this rank
 * boot is borrowed until destroy. */
int hvd_control_connect(struct hvd_control *control, const struct hvd_boot *boot,
                        const void *const *addresses, const size_t *address_bytes,
                        int timeout_ms, int *leader_fd, int local_fd, int *peer_fds,
                        struct hvd_error *err);

/* Returns the rank that made connect fail or that ends the job; -1 if none is known. */
int hvd_control_culprit(const struct hvd_control *control);

/* Queue a message to the parent (HVD_ERR_STATE on rank 0), to every child, or to the
 * children on other nodes. The message is copied, and written at once as far as the
 * socket takes it; never blocks. type must be below 0x40000000, bytes at most 64 MiB.
 * Messages to a rank that has died are dropped; the ABORT event reports its death.
 * Returns 0 or HVD_ERR_NOMEM. */
int hvd_control_send_up(struct hvd_control *control, uint32_t type, const void *payload,
                        size_t bytes);
int hvd_control_send_down(struct hvd_control *control, uint32_t type, const void *payload,
                          size_t bytes);
int hvd_control_send_to_nodes(struct hvd_control *control, uint32_t type,
                              const void *payload, size_t bytes);

/* Sends to one child, by its index. */
int hvd_control_send_child(struct hvd_control *control, int child, uint32_t type,
                           const void *payload, size_t bytes);

/* parent returns the rank of the parent, or -1. children returns the number of children;
 * *ranks are their ranks in the order of hvd_tree_children, borrowed. */
int hvd_control_parent(const struct hvd_control *control);
int hvd_control_children(const struct hvd_control *control, const int **ranks);

/* Writes queued messages, reads those that have arrived, and calls handler for each
 * event; never blocks. Returns the number of events handled. */
int hvd_control_progress(struct hvd_control *control, hvd_control_handler handler,
                         void *context);

/* Returns an epoll descriptor that is readable when progress has something to do. */
int hvd_control_fd(const struct hvd_control *control);

/* Tells every rank that `rank` is the reason why the job ends. The handler of this rank
 * gets the ABORT event too, at the next progress. Only the first reason counts. */
void hvd_control_abort(struct hvd_control *control, int rank, const char *text);

/* From now on a neighbour may close its socket without a failure, because the ranks have
 * agreed to shut down. */
void hvd_control_expect_close(struct hvd_control *control);

/* Writes queued messages for at most timeout_ms, then closes. NULL is allowed. */
void hvd_control_destroy(struct hvd_control *control, int timeout_ms);

#endif
