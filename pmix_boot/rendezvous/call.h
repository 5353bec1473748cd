/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the rendezvous service, over a connection of its own that ends with the
 * answer. If the connection ends early, the service learns that this process died; a
 * forked child does not keep the connection open.
 *
 * Threads: one per call. */
#ifndef HVD_RENDEZVOUS_CALL_H
#define HVD_RENDEZVOUS_CALL_H

#include "pmix_boot/rendezvous/channel.h"

struct hvd_rendezvous_call;

/* Connects to the service at this address (address.h) within the time limit, and tries
 * again if the service closes the connection before it has accepted this rank. Fails with
 * HVD_ERR_ARG for a bad address, or HVD_ERR_NET if the service cannot be reached. */
int hvd_rendezvous_call_begin(const char *address, int timeout_ms,
                              struct hvd_rendezvous_call **out, struct hvd_error *err);

/* Sends the question and waits for the next message of the service, which is borrowed
 * until the call ends. HVD_ERR_NET: the service is gone; HVD_ERR_TIMEOUT: it does not
 * answer. */
int hvd_rendezvous_call_ask(struct hvd_rendezvous_call *call,
                            const struct hvd_channel_message *question, int timeout_ms,
                            struct hvd_channel_message *answer, struct hvd_error *err);

/* Ends the call but not the connection, which passes to the caller. */
struct hvd_channel *hvd_rendezvous_call_release(struct hvd_rendezvous_call *call);

/* Ends the call and the connection. NULL is allowed. */
void hvd_rendezvous_call_end(struct hvd_rendezvous_call *call);

#endif
