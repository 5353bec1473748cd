/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks on different nodes, over UCX active messages or over TCP: net_choice.h.
 *
 * Between two ranks and on one channel, messages arrive in the order in which they were sent
 * and match the receives in the order in which those were posted; there are no tags. The
 * bytes of a message and of its receive are equal. A sender runs at most a window ahead of
 * what the receiver has taken (net_flow.h), so that no receiver has to store an unbounded
 * amount. Channels are few and used again: what is known of one is kept until destroy.
 *
 * Over TCP only ranks of the job get in. UCX does not ask who connects. So each message carries a key
 * of the job (net_key.h); one that does not is dropped, and the first is logged. UCX itself is not
 * protected by that.
 *
 * Threads: one thread at a time for all functions on a net (the engine's lock). */
#ifndef HVD_NET_H
#define HVD_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/net/net_choice.h"
#include "gpu_binding/base/error.h"

struct hvd_net;

struct hvd_net_op;

/* What becomes of a message that comes in, piece by piece and in order: op->done bytes of it
 * came before this piece. All pieces but the last are a multiple of HVD_NET_PIECE_BYTES. data is
 * the network's own buffer, valid during the call and aligned to nothing. Called by progress,
 * or by recv for what came early. */
typedef void hvd_net_take(struct hvd_net_op *op, const void *data, size_t bytes);

enum {
    HVD_NET_PIECE_BYTES = 64
};

/* One message under way; caller's memory, untouched by the caller until status is not
 * HVD_INPROGRESS any more. */
struct hvd_net_op {
    char *data; /* borrowed until then; a message that is sent is only read */
    hvd_net_take
        *take; /* of a receive, instead of data: a sum can read the bytes where the
                           network has put them */
    size_t bytes; /* > 0 */
    /* Sends only: over TCP, the first `covered` bytes are authenticated whatever
     * HVD_NET_SECURITY is. SIZE_MAX: all bytes. */
    size_t covered;
    bool is_device; /* data is memory of the scope's GPU */
    int status; /* HVD_INPROGRESS, 0, or negative; this and the rest are the net's */
    size_t done;
    struct hvd_net_op *next;
    void *carrier;
};

/* What goes to and comes from one peer on one channel. */
struct hvd_net_flow;

/* Listens, and opens UCX unless hvd_net_choice_obstacle speaks against it. Nobody gets in before connect.
 * The caller owns *out. */
int hvd_net_create(enum hvd_net_choice choice, struct hvd_net **out,
                   struct hvd_error *err);

/* Where others reach this rank; borrowed, valid until destroy. */
void hvd_net_address(const struct hvd_net *net, const void **address, size_t *bytes);

enum {
    HVD_NET_SECRET_BYTES = 32
};

/* A job of more than one node. */
struct hvd_net_job {
    int rank; /* this one */
    int size;
    const int *node; /* [size] */
    const char *host; /* this one's, for messages */
    const unsigned char *secret; /* HVD_NET_SECRET_BYTES, the same on all ranks */
    const void *const *addresses; /* [size] what hvd_net_address gave there */
    const size_t *bytes; /* [size] of them */
};

/* Tells the net of its job (copied), once, before anything else but address and has_cuda. Endpoints open at
 * first use. */
int hvd_net_connect(struct hvd_net *net, const struct hvd_net_job *job,
                    struct hvd_error *err);

/* The messages of this rank and a peer on a channel, to be looked up once; valid until destroy.
 * Begins to connect at first use. NULL when memory is out. */
struct hvd_net_flow *hvd_net_flow_get(struct hvd_net *net, int peer, uint32_t channel);

/* Once, before connect: newcomer is called, by progress, for what comes on the channel from a peer of
 * which nothing is being received there; it must not call the net. */
typedef void hvd_net_newcomer(void *context, int peer);
void hvd_net_watch(struct hvd_net *net, uint32_t channel, hvd_net_newcomer *newcomer,
                   void *context);

/* Queues a message; op->status says how it goes. Send is done when data may be overwritten.
 * Operations with a peer that has failed, or whose messages do not have the length that was
 * expected, end with HVD_ERR_PEER.
 *
 * A message of device memory is received as such, and its bytes stay where they are until both
 * are posted. Until status says so, also after a failure, the network may still read or write
 * there. */
void hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op);
void hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op);

/* After connect: whether messages go over UCX, not TCP. */
bool hvd_net_is_ucx(const struct hvd_net *net);

/* GPU memory. Whether UCX reads and writes that of CUDA itself, over this network; and
 * UCX's version, 11301 is 1.13.1, 0 where it is not open. */
bool hvd_net_has_cuda(const struct hvd_net *net);
int hvd_net_ucx_version(const struct hvd_net *net);

/* What makes a CUDA context the thread's own, and undoes that. enter returns whether it did. */
struct hvd_net_scope {
    bool (*enter)(void *context);
    void (*leave)(void *context);
    void *context;
};

/* Before device memory goes this way: whatever may reach UCX is in the scope from now on, also
 * destroy. */
void hvd_net_use_scope(struct hvd_net *net, const struct hvd_net_scope *scope);

/* Moves things on; returns how many events were handled, 0 when there was nothing to do. Sets
 * *failed_peer, unless it is NULL, to the first peer whose endpoint failed, or -1. */
int hvd_net_progress(struct hvd_net *net, int *failed_peer);

/* For sleeping: a descriptor for epoll, and arm, which returns 0 when the descriptor will
 * become readable at the next event, HVD_INPROGRESS when progress must be called first. */
int hvd_net_fd(const struct hvd_net *net);
int hvd_net_arm(struct hvd_net *net);

/* Something handed over is still on its way out of this process; progress moves it. */
bool hvd_net_is_sending(const struct hvd_net *net);

/* That peer; reason gets the carrier's words (borrowed). */
int hvd_net_failed_peer(const struct hvd_net *net, const char **reason);

/* Closes all without waiting for peers (they may be dead); operations under way are dropped, and
 * so may be sends that are done but have not reached their peer: agree on the end before.
 * NULL is fine. */
void hvd_net_destroy(struct hvd_net *net);

#endif
