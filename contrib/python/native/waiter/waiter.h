/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for requests of libhvd and calls a function when one has ended. */
#ifndef HVD_WAITER_H
#define HVD_WAITER_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* A member of the owner's struct. The waiter uses it from hvd_waiter_add until it calls
 * `ended`. */
struct hvd_awaited {
    struct hvd_request *request;
    /* for tensors on a GPU: only later work on this stream waits for the collective */
    bool has_stream;
    void *stream;
    /* called once, by the waiter's thread; may add others */
    void (*ended)(struct hvd_awaited *awaited);
    struct hvd_awaited *next;
};

/* Calls hvd_wait_on if there is a stream, otherwise hvd_wait_for. Any thread may call it,
 * but only one at a time for each request. */
int hvd_awaited_wait(struct hvd_awaited *awaited, int timeout_ms, struct hvd_error *err);

/* Starts the thread, unless it is running. Any thread may call it; err may be NULL. */
int hvd_waiter_start(struct hvd_error *err);

/* Adds a request to wait for. Any thread may call it, after hvd_waiter_start. */
void hvd_waiter_add(struct hvd_awaited *awaited);

#endif
