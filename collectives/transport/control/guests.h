/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of connecting: takes connections and asks each for a proof, until its
 * children are there. Strangers cost a bounded time and a bounded number of descriptors:
 * when too many wait, the one that came first has to leave. */
#ifndef HVD_GUESTS_H
#define HVD_GUESTS_H

#include <poll.h>
#include <stdint.h>

#include "pmix_boot/wire/link.h"
#include "pmix_boot/boot.h"

struct hvd_guests;

/* Called when a guest has proved to be rank `child`. Takes the link over and returns true, or
 * false to turn it away. */
typedef bool (*hvd_guests_admit)(void *context, int child, struct hvd_link *link);

/* Watches the two listening descriptors, which stay the caller's, for `children` children.
 * boot is borrowed. */
int hvd_guests_create(const struct hvd_boot *boot, const int listening[2], int children,
                      struct hvd_guests **out);
void hvd_guests_destroy(struct hvd_guests *guests);

/* The most entries that hvd_guests_poll fills. */
int hvd_guests_capacity(const struct hvd_guests *guests);

/* Fills in what to wait for and lowers *deadline_ms to when it must step anyway; returns the
 * number of entries. */
int hvd_guests_poll(struct hvd_guests *guests, struct pollfd *fds, int64_t *deadline_ms);

/* Goes on with what poll() reported for those entries. */
void hvd_guests_step(struct hvd_guests *guests, const struct pollfd *fds, int64_t now_ms,
                     hvd_guests_admit admit, void *context);

/* How many gave a wrong proof: a sign of a wrong secret. */
int hvd_guests_refused(const struct hvd_guests *guests);

#endif
