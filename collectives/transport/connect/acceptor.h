/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of connecting (the parent of a control link, the receiver of a stream): accepts connections and asks each for a proof that it is a
 * child. Until then a connection is pending. Strangers cost a bounded time and a bounded number
 * of descriptors: when too many are pending, the oldest that has said nothing is closed. */
#ifndef HVD_ACCEPTOR_H
#define HVD_ACCEPTOR_H

#include <poll.h>
#include <stdint.h>

#include "pmix_boot/wire/handshake.h"
#include "pmix_boot/wire/link.h"
#include "pmix_boot/wire/socket.h"

struct hvd_acceptor;

/* Called when a connection has proved to be rank `child`. Takes the link over, which is
 * protected, and returns true, or false to turn it away. keys: of the connection, valid
 * during the call. */
typedef bool (*hvd_acceptor_admit)(void *context, int child, struct hvd_link *link,
                                   const struct hvd_handshake_keys *keys);

/* Listening descriptors, which stay the caller's: of a place and of a unix socket. */
struct hvd_acceptor_doors {
    int fds[HVD_SOCKET_ADDRESSES + 1];
    int count;
};

/* Closes those that are open, if any. */
void hvd_acceptor_doors_close(struct hvd_acceptor_doors *doors);

/* Watches the doors for `children` children of self. The secret of self is borrowed. */
int hvd_acceptor_create(const struct hvd_handshake_party *self,
                        const struct hvd_acceptor_doors *doors, int children,
                        struct hvd_acceptor **out);
void hvd_acceptor_destroy(struct hvd_acceptor *acceptor);

/* The most entries that hvd_acceptor_poll fills. */
int hvd_acceptor_capacity(const struct hvd_acceptor *acceptor);

/* Fills in what to wait for and lowers *deadline_ms to when it must step anyway; returns the
 * number of entries. */
int hvd_acceptor_poll(struct hvd_acceptor *acceptor, struct pollfd *fds,
                      int64_t *deadline_ms);

/* Goes on with what poll() reported for those entries. */
void hvd_acceptor_step(struct hvd_acceptor *acceptor, const struct pollfd *fds,
                       int64_t now_ms, hvd_acceptor_admit admit, void *context);

#endif
