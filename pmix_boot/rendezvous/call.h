/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the rendezvous service, over a connection of its own that ends with the answer.
 * The service learns from an early end that this process died; a forked child does not hold
 * the connection open.
 *
 * Threads: one for each call. */
#ifndef HVD_RENDEZVOUS_CALL_H
#define HVD_RENDEZVOUS_CALL_H

#include "pmix_boot/rendezvous/channel.h"

struct hvd_rendezvous_call;

/* Reaches the service at this address (see address.h) within the time limit. Fails with
 * HVD_ERR_ARG for a bad address, HVD_ERR_NET when the service cannot be reached. */
int hvd_rendezvous_call_begin(const char *address, int timeout_ms,
                              struct hvd_rendezvous_call **out, struct hvd_error *err);

/* Sends the question and waits for the next message of the service, which is borrowed until the
 * call ends. HVD_ERR_NET: the service is gone; HVD_ERR_TIMEOUT: it says nothing. */
int hvd_rendezvous_call_ask(struct hvd_rendezvous_call *call,
                            const struct hvd_channel_message *question, int timeout_ms,
                            struct hvd_channel_message *answer, struct hvd_error *err);

/* Ends the call, but not the connection, which is the caller's then. */
struct hvd_channel *hvd_rendezvous_call_release(struct hvd_rendezvous_call *call);

/* NULL is fine. */
void hvd_rendezvous_call_end(struct hvd_rendezvous_call *call);

#endif
