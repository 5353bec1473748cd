/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages (messages/messages.h): submissions go in, ends come out. They pass by
 * the agreement.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_MESSAGING_H
#define HVD_MESSAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_engine;

/* When the network is open, and before it is connected. */
int hvd_messaging_open(struct hvd_engine *engine, struct hvd_error *err);

/* Starts what has been submitted. True if there was something. */
bool hvd_messaging_start(struct hvd_engine *engine);

/* Likewise, and moves on what is under way; hvd_messages_failure tells if it cannot. True if anything
 * was done. */
bool hvd_messaging_progress(struct hvd_engine *engine, int64_t now_ns);

/* The last look before sleeping: progress has something to do. */
bool hvd_messaging_has_news(const struct hvd_engine *engine);

/* Nothing is submitted any more: what has been sent is brought to its receivers. */
void hvd_messaging_flush(struct hvd_engine *engine);

/* The set has been aborted. */
void hvd_messaging_abort_set(struct hvd_engine *engine, int set, const char *reason);

/* Ends all. */
void hvd_messaging_drop(struct hvd_engine *engine, int status, const char *text);

#endif
