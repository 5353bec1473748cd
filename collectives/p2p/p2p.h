/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from one rank to another: sends and receives under way on this rank.
 *
 *   started ──► the other side is there (matching.h)? ──► moved as envelope.h says ──► ended
 *
 * A small message is copied and its send ends at once; its receiver has to keep it, of
 * each rank up to HVD_EAGER_WINDOW. A large one stays with the sender until a receive is
 * there.
 *
 * Shutdown: no message is started any more; each rank sends FLUSH to all that it has
 * written to. When all have answered and nothing is being moved, this rank has drained:
 * what it has sent is with its receivers, and what is still under way will not end.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_P2P_H
#define HVD_P2P_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/request/request.h"
#include "gpu_binding/base/error.h"

struct hvd_boot;
struct hvd_p2p;
struct hvd_mail;
struct hvd_net;
struct hvd_set;
struct hvd_sets;
struct hvd_shm;

/* The request has ended, and may be gone after the call. */
typedef void hvd_p2p_ended(void *context, struct hvd_entry *entry, int status,
                           const char *text);

/* Whether what has been received is where its caller wants it. */
typedef bool hvd_p2p_settled(void *context);

/* All borrowed, also context. */
struct hvd_p2p_config {
    const struct hvd_boot *boot;
    const struct hvd_sets *sets; /* looked at when something is progressed */
    struct hvd_net *net; /* NULL: one node */
    struct hvd_shm *shm;
    struct hvd_mail *mail;
    hvd_p2p_ended *ended;
    hvd_p2p_settled *settled; /* NULL: once it has ended */
    void *context;
    int64_t warning_ns; /* who waits longer is told of; 0: nobody */
};

/* At any time, once the net is made: ranks may have written to this one before. The
 * caller owns *out, and destroys it after the net, which may have its memory. */
int hvd_p2p_create(const struct hvd_p2p_config *config, struct hvd_p2p **out,
                   struct hvd_error *err);
void hvd_p2p_destroy(struct hvd_p2p *p2p); /* NULL is fine */

/* A rank of another node has written, of which the net says (hvd_net_watch,
 * HVD_NET_LINK_CHANNEL) that nothing is being received. Must not call the net, and may be
 * called by it. */
void hvd_p2p_note_caller(struct hvd_p2p *p2p, int rank);

/* Of a request with one entry that was submitted before now: kind, set, dtype and root
 * (the other rank, HVD_ANY_SOURCE) of its descriptor, input or output with output_bytes
 * bytes, and the tag. */
void hvd_p2p_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns);

/* Moves them on; true if anything moved. Costs a few loads where there is nothing to
 * do. */
bool hvd_p2p_progress(struct hvd_p2p *p2p);

/* Before sleeping: whether progress has something to do. */
bool hvd_p2p_have_news(const struct hvd_p2p *p2p);

/* Whether other ranks need not wake this one, because it calls progress before long.
 * Until then what they have written is no news. */
void hvd_p2p_suppress_wakeups(struct hvd_p2p *p2p, bool is_suppressed);

/* Whether the job cannot go on, and why: progress has found out. */
const struct hvd_error *hvd_p2p_failure(const struct hvd_p2p *p2p);

/* Some are under way; and some of these are being moved. */
bool hvd_p2p_are_pending(const struct hvd_p2p *p2p);
bool hvd_p2p_are_moving(const struct hvd_p2p *p2p);

/* When the next warning is due, -1: none is; and warns, if it is. */
int64_t hvd_p2p_deadline(const struct hvd_p2p *p2p);
void hvd_p2p_warn(struct hvd_p2p *p2p, int64_t now_ns);

/* The set has been aborted: ends what waits in it. What is being moved goes on, and
 * ends; so does a send that another rank has not refused yet. */
void hvd_p2p_abort_set(struct hvd_p2p *p2p, const struct hvd_set *set);

/* Nothing is started any more; then, whether this rank has drained. */
void hvd_p2p_flush(struct hvd_p2p *p2p);
bool hvd_p2p_have_drained(const struct hvd_p2p *p2p);

/* Ends all, and what comes after is ignored. */
void hvd_p2p_drop(struct hvd_p2p *p2p, int status, const char *text);

#endif
