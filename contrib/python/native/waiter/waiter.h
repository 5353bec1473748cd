/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for requests of libhvd and calls a function when each has ended. */
#ifndef HVD_WAITER_H
#define HVD_WAITER_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* Part of what waits for a request; the owner's, until `ended` is called. */
struct hvd_awaited {
    struct hvd_request *request;
    /* of tensors on a GPU: what comes next on it waits, and nobody else */
    bool has_stream;
    void *stream;
    void (*ended)(struct hvd_awaited *awaited); /* by the thread, once; may add others */
    struct hvd_awaited *next;
};

/* As hvd_wait_on where there is a stream, else as hvd_wait_for. Any thread, one at a
 * time. */
int hvd_awaited_wait(struct hvd_awaited *awaited, int timeout_ms, struct hvd_error *err);

/* Starts the thread, unless it is there. Any thread; err may be NULL. */
int hvd_waiter_start(struct hvd_error *err);

/* Any thread, once the waiter's has been started. */
void hvd_waiter_add(struct hvd_awaited *awaited);

#endif
