/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks on different nodes, over UCX active messages or TCP
 * (net_choice.h).
 *
 * Messages between two ranks on one channel arrive in the order in which they were sent,
 * and match receives in the order in which those were posted. There are no tags, and a
 * message must be exactly as long as its receive. A sender runs at most one window ahead
 * of the receiver (net_flow.h), so that a receiver never stores an unbounded amount. Use
 * few channels and reuse them: the state of a channel is kept until destroy.
 *
 * TCP accepts connections only from ranks of this job. UCX accepts any connection, so
 * each message carries a key of the job (net_key.h). Messages with a wrong key are
 * dropped, and the first one is logged. The key does not protect UCX itself.
 *
 * Threads: one thread at a time per net, under the progress lock. */
#ifndef HVD_NET_H
#define HVD_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/net/net_choice.h"
#include "gpu_binding/base/error.h"

struct hvd_net;

struct hvd_net_op;

/* Receives a message piece by piece, in order: op->done bytes came before this piece.
 * Every piece except the last is a multiple of HVD_NET_PIECE_BYTES. data is the network's
 * own buffer, unaligned, and valid during the call. Called by progress, or by recv for
 * bytes that arrived before. */
typedef void hvd_net_take(struct hvd_net_op *op, const void *data, size_t bytes);

enum {
    HVD_NET_PIECE_BYTES = 64
};

/* A message under way. The caller owns it and must not touch it while status is
 * HVD_INPROGRESS. */
struct hvd_net_op {
    char *data; /* borrowed until the operation ends; a send only reads it */
    /* receives only, instead of data: lets a reduction read the bytes in the network's
     * buffer */
    hvd_net_take *take;
    size_t bytes; /* greater than 0 */
    /* Sends only: over TCP the first `covered` bytes are authenticated even if
     * HVD_NET_SECURITY does not ask for it. SIZE_MAX means all bytes. */
    size_t covered;
    bool is_device; /* data is GPU memory; see hvd_net_use_scope */
    /* HVD_INPROGRESS, 0 or negative. The members from here on belong to the net. */
    int status;
    size_t done;
    struct hvd_net_op *next;
    void *transport;
};

/* Messages to and from one peer on one channel. */
struct hvd_net_flow;

/* Listens for TCP connections, and opens UCX unless hvd_net_choice_obstacle rules it out.
 * Admits no connection before connect. The caller owns *out. */
int hvd_net_create(enum hvd_net_choice choice, struct hvd_net **out,
                   struct hvd_error *err);

/* Returns the address that other ranks need to reach this one; borrowed, valid until
 * destroy. */
void hvd_net_address(const struct hvd_net *net, const void **address, size_t *bytes);

enum {
    HVD_NET_SECRET_BYTES = 32
};

/* The job, which spans more than one node. */
struct hvd_net_job {
    int rank; /* this rank */
    int size;
    const int *node; /* [size] */
    const char *host; /* name of this host, for messages to the user */
    const unsigned char *secret; /* HVD_NET_SECRET_BYTES, the same on all ranks */
    const void *const *addresses; /* [size] the results of hvd_net_address on each rank */
    const size_t *bytes; /* [size] their lengths */
};

/* Tells the net about its job, which is copied. Call once, before all functions except
 * address, has_cuda and watch. Endpoints open when they are first used. */
int hvd_net_connect(struct hvd_net *net, const struct hvd_net_job *job,
                    struct hvd_error *err);

/* Returns the flow of messages between this rank and a peer on a channel. Look it up
 * once: it is valid until destroy. The first call starts to connect. Returns NULL if
 * memory runs out. */
struct hvd_net_flow *hvd_net_flow_get(struct hvd_net *net, int peer, uint32_t channel);

/* Watches a channel; call it once, before connect. progress calls newcomer when a message
 * arrives on this channel from a peer and no receive for that peer is posted. newcomer
 * must not call the net. */
typedef void hvd_net_newcomer(void *context, int peer);
void hvd_net_watch(struct hvd_net *net, uint32_t channel, hvd_net_newcomer *newcomer,
                   void *context);

/* Queues a message; op->status changes when it has ended. After a send has ended, its
 * data may be overwritten. Operations end with HVD_ERR_PEER if the peer has failed, or if
 * message and receive differ in length.
 *
 * Device memory can only be received into device memory, and the bytes stay with the
 * sender until both operations are posted. The network may read or write the memory until
 * status is set, even after a failure. */
void hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op);
void hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op);

/* Whether messages go over UCX rather than TCP. Call after connect. */
bool hvd_net_is_ucx(const struct hvd_net *net);

/* has_cuda: whether UCX can read and write CUDA memory over this network. ucx_version:
 * 11301 for 1.13.1, 0 if UCX is not open. */
bool hvd_net_has_cuda(const struct hvd_net *net);
int hvd_net_ucx_version(const struct hvd_net *net);

/* Makes the CUDA context of device memory current on the calling thread, and undoes that.
 * enter returns whether it changed anything. */
struct hvd_net_scope {
    bool (*enter)(void *context);
    void (*leave)(void *context);
    void *context;
};

/* Call before device memory is first used: from now on every call that may reach UCX,
 * including destroy, runs in this scope. */
void hvd_net_use_scope(struct hvd_net *net, const struct hvd_net_scope *scope);

/* Advances all operations. Returns the number of events handled, 0 if there was nothing
 * to do. Sets *failed_peer, unless it is NULL, to the first peer whose endpoint failed,
 * or -1. */
int hvd_net_progress(struct hvd_net *net, int *failed_peer);

/* fd returns a descriptor for epoll. arm prepares it for sleeping: returns 0 if the
 * descriptor will become readable at the next event, or HVD_INPROGRESS if progress must
 * be called first. */
int hvd_net_fd(const struct hvd_net *net);
int hvd_net_arm(struct hvd_net *net);

/* Whether messages given to hvd_net_send are still in this process; progress moves them
 * out. */
bool hvd_net_is_sending(const struct hvd_net *net);

/* Returns the first failed peer, or -1; *reason is the transport's text (borrowed). */
int hvd_net_failed_peer(const struct hvd_net *net, const char **reason);

/* Closes everything without waiting for peers, which may be dead. Operations under way
 * are dropped; sends that have ended but not reached their peer may be dropped, too, so
 * let the ranks agree on the end first. NULL is allowed. */
void hvd_net_destroy(struct hvd_net *net);

#endif
