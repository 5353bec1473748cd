/* SPDX-License-Identifier: Apache-2.0 */
/* One round over everything that can move: messages, submissions, decisions; network, GPU, batches.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_POLL_H
#define HVD_POLL_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_engine;

struct hvd_poll {
    bool data_moves; /* it did in the last round */
    bool has_batches; /* some were queued or under way after it */
    int64_t heard_ns; /* when messages and submissions were last looked at */
    int64_t control_seen_ns; /* when the control sockets were last looked at */
};

/* True if anything moved. */
bool hvd_poll_all(struct hvd_engine *engine);

/* The last look before sleeping at what would have woken this rank: true if something is there.
 * ignores_net: while this rank is only about to submit what another one has begun. */
bool hvd_poll_before_sleep(struct hvd_engine *engine, bool ignores_net);

/* When there is something to do although nothing has happened, or, if sooner, until_ns; -1: never. */
int64_t hvd_poll_deadline(const struct hvd_engine *engine, int64_t until_ns,
                          int64_t now_ns);

#endif
