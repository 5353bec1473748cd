/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages: the sends and receives of this rank.
 *
 *   started ──► matched (matching.h)? ──► transferred as in envelope.h ──► ended
 *
 * A small message is copied, and its send ends at once. The receiver has to store it, up
 * to HVD_EAGER_WINDOW per sender. A large message stays with the sender until a receive
 * matches.
 *
 * Shutdown: no new messages are started, and each rank sends FLUSH to all ranks that it
 * has written to. Once all have answered and nothing is being transferred, this rank has
 * drained: its messages have reached their receivers, and no partner will come for the
 * sends and receives that still wait.
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

/* Called when a request has ended; the request may be freed after the call. */
typedef void hvd_p2p_ended(void *context, struct hvd_entry *entry, int status,
                           const char *text);

/* Returns whether received data has reached its final place (a GPU, for instance). */
typedef bool hvd_p2p_settled(void *context);

/* All members are borrowed, including context. */
struct hvd_p2p_config {
    const struct hvd_boot *boot;
    const struct hvd_sets *sets; /* tells whether a set is aborted */
    struct hvd_net *net; /* NULL on a single node */
    struct hvd_shm *shm;
    struct hvd_mail *mail;
    hvd_p2p_ended *ended;
    hvd_p2p_settled *settled; /* NULL: data is in place when its receive ends */
    void *context;
    int64_t warning_ns; /* warn about messages that wait longer; 0: never */
};

/* Call at any time after the net is created; messages that arrived earlier are not lost.
 * The caller owns *out, and must destroy it after the net, because the net may still use
 * its buffers. */
int hvd_p2p_create(const struct hvd_p2p_config *config, struct hvd_p2p **out,
                   struct hvd_error *err);
void hvd_p2p_destroy(struct hvd_p2p *p2p); /* NULL is fine */

/* Call when a rank of another node has written and the net has no receive posted for it
 * (hvd_net_watch, HVD_NET_LINK_CHANNEL). Does not call the net, so the net may call it.
 */
void hvd_p2p_note_caller(struct hvd_p2p *p2p, int rank);

/* Starts a request with a single entry: its descriptor has kind, set, dtype and root (the
 * other rank, or HVD_ANY_SOURCE); its input or output has output_bytes bytes; the tag is
 * that of the request. */
void hvd_p2p_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns);

/* Advances all messages; returns true if anything moved. Costs a few loads if there is
 * nothing to do. */
bool hvd_p2p_progress(struct hvd_p2p *p2p);

/* Whether progress has something to do; called before sleeping. */
bool hvd_p2p_have_news(const struct hvd_p2p *p2p);

/* Tells other ranks that they need not wake this one, because it calls progress soon.
 * Until then hvd_p2p_have_news ignores their messages. */
void hvd_p2p_suppress_wakeups(struct hvd_p2p *p2p, bool is_suppressed);

/* Returns the failure that ends the job, found by progress; its status is 0 if there is
 * none. */
const struct hvd_error *hvd_p2p_failure(const struct hvd_p2p *p2p);

/* are_pending: whether any message has not ended. are_moving: whether any is being
 * transferred. */
bool hvd_p2p_are_pending(const struct hvd_p2p *p2p);
bool hvd_p2p_are_moving(const struct hvd_p2p *p2p);

/* deadline returns when the next warning is due, or -1; warn logs the warning if it is
 * due. */
int64_t hvd_p2p_deadline(const struct hvd_p2p *p2p);
void hvd_p2p_warn(struct hvd_p2p *p2p, int64_t now_ns);

/* Ends the receives of an aborted set that have no message yet, and discards stored
 * messages. Transfers that have begun continue to their end. A send that waits for a
 * receive ends when the other rank answers ABORTED. */
void hvd_p2p_abort_set(struct hvd_p2p *p2p, const struct hvd_set *set);

/* flush: begins the shutdown; nothing may be started afterwards. have_drained: whether
 * this rank has drained. */
void hvd_p2p_flush(struct hvd_p2p *p2p);
bool hvd_p2p_have_drained(const struct hvd_p2p *p2p);

/* Ends all messages; ignores everything that arrives afterwards. */
void hvd_p2p_drop(struct hvd_p2p *p2p, int status, const char *text);

#endif
