/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages (messages/messages.h): submissions go in, ends come out. They pass by
 * the agreement.
 *
 * Most jobs never send: messages are opened by the first send or receive of this rank, or by the first
 * envelope for it. Until then nothing of them is polled but the board on which ranks of the node leave
 * word, at most every 50 us and before this rank sleeps. They write there and then ring.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_MESSAGING_H
#define HVD_MESSAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/messages/node_link.h"
#include "gpu_binding/base/error.h"

struct hvd_engine;
struct hvd_messages;

/* Zeroed at first. */
struct hvd_messaging {
    struct hvd_messages *messages; /* NULL: not open */
    struct hvd_node_board board; /* as long as they are not open */
    struct hvd_error failure; /* why they could not be opened */
    bool is_over; /* dropped: not opened any more */
};

/* From now on they can be opened. When the network is open, and before it is connected. */
void hvd_messaging_init(struct hvd_engine *engine);

/* Starts what has been submitted. True if there was something. */
bool hvd_messaging_start(struct hvd_engine *engine);

/* Likewise, and moves on what is under way; hvd_messaging_failure tells if it cannot. True if anything
 * was done. Needs no call while they are not open and nothing is submitted. */
bool hvd_messaging_progress(struct hvd_engine *engine, int64_t now_ns);

/* Opens them if a rank of this node has written. */
void hvd_messaging_look(struct hvd_engine *engine);

/* The last look before sleeping: look or progress has something to do. */
bool hvd_messaging_has_news(const struct hvd_engine *engine);

/* Some are being moved. */
bool hvd_messaging_is_moving(const struct hvd_engine *engine);

/* As hvd_messages_hush and hvd_messages_deadline. */
void hvd_messaging_hush(struct hvd_engine *engine, bool is_hushed);
int64_t hvd_messaging_deadline(const struct hvd_engine *engine);

/* Whether the job cannot go on, and why. */
const struct hvd_error *hvd_messaging_failure(const struct hvd_engine *engine);

/* Nothing is submitted any more: what has been sent is brought to its receivers; then, whether it is
 * with them. */
void hvd_messaging_flush(struct hvd_engine *engine);
bool hvd_messaging_has_drained(const struct hvd_engine *engine);

/* The set has been aborted. */
void hvd_messaging_abort_set(struct hvd_engine *engine, int set, const char *reason);

/* Ends all. */
void hvd_messaging_drop(struct hvd_engine *engine, int status, const char *text);

#endif
