/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for the tests of the mailbox: anyone who knows the seed, the sender and the number of
 * a message knows its size and its bytes. */
#ifndef HVD_TEST_MAILBOX_DATA_H
#define HVD_TEST_MAILBOX_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/control/mailbox.h"

enum {
    MAILBOX_MAX_BYTES = 1000 * 1000
};

/* Of message `number` of a sender: most are small, some larger than a ring. */
size_t mailbox_size(unsigned seed, int sender, uint32_t number);

/* buffer: MAILBOX_MAX_BYTES + 8. */
void mailbox_fill(char *buffer, unsigned seed, int sender, uint32_t number, size_t bytes);
bool mailbox_is_right(const void *payload, unsigned seed, int sender, uint32_t number,
                      size_t bytes);

/* Sends message `number` of this sender; its type is its number. */
int mailbox_post(struct hvd_mailbox *box, unsigned seed, int sender, uint32_t number);

/* Who has received what; the context of the handler. */
struct mailbox_tally {
    unsigned seed;
    uint32_t got[64]; /* messages of each sender, as long as all is right */
    bool is_wrong; /* out of order, lost, or other bytes than were sent */
};
void mailbox_check(void *tally, int from, uint32_t type, const void *payload,
                   size_t bytes);

#endif
