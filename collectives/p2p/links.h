/* SPDX-License-Identifier: Apache-2.0 */
/* How envelopes (envelope.h) get from this rank to others: to itself by a call, to
 * ranks of the node by mail (mail.h), to others by net_link.h, opened at first use.
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

/* An envelope of a rank, with so many bytes behind it as it says; both valid during
 * the call. May write. Returns 0, or a failure that ends all. */
typedef int hvd_links_arrived(void *context, int rank,
                              const struct hvd_envelope *envelope, const void *payload);

/* All borrowed. */
struct hvd_links_config {
    const struct hvd_boot *boot;
    struct hvd_net *net; /* NULL: one node */
    struct hvd_mail *mail;
    hvd_links_arrived *arrived;
    void *context;
};

struct hvd_links {
    struct hvd_links_config config;
    struct hvd_p2p_link **links; /* [size], to other nodes, NULL until first use */
    struct hvd_p2p_link *busy; /* those on which something waits to go out */
    int *callers; /* [size] ranks of other nodes that were not heard of before */
    int caller_count;
    char *frame; /* room for the longest envelope */
    struct hvd_error failure; /* status != 0: it cannot go on */
};

/* Ends with finish in any case; the net first. */
int hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                   struct hvd_error *err);
void hvd_links_finish(struct hvd_links *links); /* zeroed is fine */

/* Copies both. A failure is the job's: links->failure. */
int hvd_links_write(struct hvd_links *links, int rank,
                    const struct hvd_envelope *envelope, const void *payload);

/* The net has a message of a rank of another node to which there is no link: progress
 * opens one. Any time, also while the net hands over what has come. */
void hvd_links_note_caller(struct hvd_links *links, int rank);

/* Whether a piece that is written now would be on its way at once. */
bool hvd_links_have_room(const struct hvd_links *links, int rank);

/* The local rank of a rank on this node, which is not this one; else -1. */
int hvd_links_local_rank(const struct hvd_links *links, int rank);

/* Hands over what has come, and writes what waits. True if anything moved. */
bool hvd_links_progress(struct hvd_links *links);

/* Whether there is something to do: the last look before sleeping. */
bool hvd_links_have_news(const struct hvd_links *links);

#endif
