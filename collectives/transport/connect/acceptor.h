/* SPDX-License-Identifier: Apache-2.0 */
/* The accepting side of connections: the parent of control links, or the receiver of
 * streams. Each accepted connection is pending until its other end has proved to be a
 * rank of the job, called the child. Strangers cost only a bounded time and a bounded
 * number of descriptors: if too many connections are pending, the oldest that has not
 * said hello is closed.
 *
 * A child connects again only after it has given up its earlier connection. Once it is
 * admitted, the acceptor closes its earlier ones: a proof that arrives there late must
 * not replace the later connection. */
#ifndef HVD_ACCEPTOR_H
#define HVD_ACCEPTOR_H

#include <poll.h>
#include <stdint.h>

#include "pmix_boot/sock/handshake.h"
#include "pmix_boot/sock/link.h"
#include "pmix_boot/sock/socket.h"

struct hvd_acceptor;

/* Called when a connection has proved to be rank `child`. Returns true and takes over the
 * link, which is now protected, or returns false to refuse it. keys: the keys of the
 * connection, valid during the call. */
typedef bool (*hvd_acceptor_admit)(void *context, int child, struct hvd_link *link,
                                   const struct hvd_handshake_keys *keys);

/* Listening sockets, owned by the caller: TCP on some addresses, and a unix socket. */
struct hvd_acceptor_doors {
    int fds[HVD_SOCKET_ADDRESSES + 1];
    int count;
};

/* Closes the sockets that are open. */
void hvd_acceptor_doors_close(struct hvd_acceptor_doors *doors);

/* Creates an acceptor for `children` children of self, which accepts on these sockets.
 * The secret of self is borrowed. */
int hvd_acceptor_create(const struct hvd_handshake_party *self,
                        const struct hvd_acceptor_doors *doors, int children,
                        struct hvd_acceptor **out);
void hvd_acceptor_destroy(struct hvd_acceptor *acceptor);

/* Returns the largest number of entries that hvd_acceptor_poll fills in. */
int hvd_acceptor_capacity(const struct hvd_acceptor *acceptor);

/* Fills in the descriptors to wait for and returns their number. Lowers *deadline_ms to
 * the time when hvd_acceptor_step must be called in any case. */
int hvd_acceptor_poll(struct hvd_acceptor *acceptor, struct pollfd *fds,
                      int64_t *deadline_ms);

/* Handles the events that poll() reported for the entries of hvd_acceptor_poll. */
void hvd_acceptor_step(struct hvd_acceptor *acceptor, const struct pollfd *fds,
                       int64_t now_ms, hvd_acceptor_admit admit, void *context);

#endif
