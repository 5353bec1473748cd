/* SPDX-License-Identifier: Apache-2.0 */
/* A node of ranks with mail, and its data for tests: whoever knows the seed, the
 * sender and the number of a piece of mail knows its size and its bytes. */
#ifndef HVD_TEST_MAIL_DATA_H
#define HVD_TEST_MAIL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/shm/mail.h"

enum {
    MAIL_MAX_BYTES = 1000 * 1000,
    MAIL_MAX_RANKS = 8,
};

/* The memory of a node, and the eventfds of its ranks. */
struct mail_node {
    int size;
    int file;
    int bells[MAIL_MAX_RANKS];
};

/* One rank of it. */
struct mail_rank {
    struct hvd_shm *shm;
    struct hvd_mail *mail;
};

void mail_open_node(struct mail_node *node, int size);
void mail_close_node(struct mail_node *node);

/* memory: NULL, or where the mail is instead of in this rank's mapping. */
void mail_open_rank(const struct mail_node *node, int local_rank, void *memory,
                    struct mail_rank *rank);
void mail_close_rank(struct mail_rank *rank);

/* Sends piece `number` of a kind; its type is its number if it is control mail. To: of
 * messages. */
int mail_post(struct hvd_mail *mail, enum hvd_mail_kind kind, unsigned seed, int from,
              int to, uint32_t number);

/* The mail of one kind that a rank has received; the context of mail_check. */
struct mail_tally {
    enum hvd_mail_kind kind;
    unsigned seed;
    int rank; /* that receives */
    uint32_t got[MAIL_MAX_RANKS]; /* from each sender, as long as all is right */
    bool is_wrong; /* out of order, lost, or other bytes than were sent */
};

int mail_check(void *tally, int from, uint32_t type, const void *payload, size_t bytes);

#endif
