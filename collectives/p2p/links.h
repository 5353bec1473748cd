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

/* An envelope has arrived from a rank, followed by as many bytes as it says; both are
 * valid during the call. May write. Returns 0, or a failure that ends the job. */
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
    struct hvd_p2p_link *busy; /* links that have something waiting to go out */
    int *callers; /* [size] ranks of other nodes that wrote for the first time */
    int caller_count;
    char *frame; /* room for the longest envelope */
    struct hvd_error failure; /* status != 0: the links cannot go on */
};

/* Call finish in either case, after destroying the net. */
int hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                   struct hvd_error *err);
void hvd_links_finish(struct hvd_links *links); /* zeroed is fine */

/* Copies both. A failure ends the job: see links->failure. */
int hvd_links_write(struct hvd_links *links, int rank,
                    const struct hvd_envelope *envelope, const void *payload);

/* The net has a message from a rank of another node to which no link exists: progress
 * will open one. May be called at any time, even from a callback of the net. */
void hvd_links_note_caller(struct hvd_links *links, int rank);

/* Whether a piece written now would leave at once. */
bool hvd_links_have_room(const struct hvd_links *links, int rank);

/* The local rank of another rank on this node, or -1. */
int hvd_links_local_rank(const struct hvd_links *links, int rank);

/* Passes on what has arrived and writes what waits. Returns true if anything moved. */
bool hvd_links_progress(struct hvd_links *links);

/* Whether there is something to do: the last check before sleeping. */
bool hvd_links_have_news(const struct hvd_links *links);

#endif
