/* SPDX-License-Identifier: Apache-2.0 */
/* Carries envelopes (envelope.h) from this rank to others: to itself by a function call,
 * to ranks of the node by mail (mail.h), and to other nodes by net_link.h, opened at
 * first use.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_LINKS_H
#define HVD_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/p2p/envelope.h"

struct hvd_boot;
struct hvd_mail;
struct hvd_p2p_link;
struct hvd_net;

/* Handles an envelope from a rank. Its payload follows it; both are valid during the
 * call. The handler may send envelopes. Returns 0, or a failure that ends the job. */
typedef int hvd_links_arrived(void *context, int rank,
                              const struct hvd_envelope *envelope, const void *payload);

/* All members are borrowed. */
struct hvd_links_config {
    const struct hvd_boot *boot;
    struct hvd_net *net; /* NULL on a single node */
    struct hvd_mail *mail;
    hvd_links_arrived *arrived;
    void *context;
};

struct hvd_links {
    struct hvd_links_config config;
    struct hvd_p2p_link **links; /* [size] links to other nodes, NULL until first use */
    struct hvd_p2p_link *busy; /* links that have frames waiting to go out */
    /* [size] ranks of other nodes that wrote to this rank and have no link yet */
    int *callers;
    int caller_count;
    char *frame; /* buffer for the longest envelope with payload */
    struct hvd_error failure; /* status != 0: the links are unusable */
};

/* Call hvd_links_finish even if this fails, and only after the net is destroyed. */
int hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                   struct hvd_error *err);
void hvd_links_finish(struct hvd_links *links); /* zeroed is allowed */

/* Sends an envelope with its payload; copies both. A failure ends the job: see
 * links->failure. */
int hvd_links_write(struct hvd_links *links, int rank,
                    const struct hvd_envelope *envelope, const void *payload);

/* Call when the net has a message from a rank of another node to which no link exists:
 * progress will open one. May be called at any time, even from a callback of the net. */
void hvd_links_note_caller(struct hvd_links *links, int rank);

/* Whether a piece written now would be sent at once. */
bool hvd_links_have_room(const struct hvd_links *links, int rank);

/* Returns the local rank of another rank on this node; -1 for this rank and for ranks on
 * other nodes. */
int hvd_links_local_rank(const struct hvd_links *links, int rank);

/* Delivers envelopes that have arrived and writes those that wait. Returns true if there
 * were any. */
bool hvd_links_progress(struct hvd_links *links);

/* Whether progress has something to do. Used as the last check before sleeping. */
bool hvd_links_have_news(const struct hvd_links *links);

#endif
