/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the mail of the ranks of a node (their messages in shared memory), and makes and
 * checks its data for tests. The size and the bytes of a piece of mail are computed from
 * the seed, its sender and its number, so that the receiver knows them. */
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

/* The shared memory of a node, and the eventfds that wake its ranks. */
struct mail_node {
    int size;
    int file;
    int bells[MAIL_MAX_RANKS];
};

/* One rank of a node. */
struct mail_rank {
    struct hvd_shm *shm;
    struct hvd_mail *mail;
};

void mail_open_node(struct mail_node *node, int size);
void mail_close_node(struct mail_node *node);

/* memory: where the mail is, or NULL for this rank's own mapping. */
void mail_open_rank(const struct mail_node *node, int local_rank, void *memory,
                    struct mail_rank *rank);
void mail_close_rank(struct mail_rank *rank);

/* Sends piece `number` of a kind. `to`: the receiver of a message; control mail has fixed
 * receivers. The type of control mail is its number. */
int mail_post(struct hvd_mail *mail, enum hvd_mail_kind kind, unsigned seed, int from,
              int to, uint32_t number);

/* Counts the mail of one kind that a rank has received. This is the context of
 * mail_check. */
struct mail_tally {
    enum hvd_mail_kind kind;
    unsigned seed;
    int rank; /* the receiver */
    uint32_t got[MAIL_MAX_RANKS]; /* pieces from each sender */
    bool is_wrong; /* mail was lost, out of order or changed */
};

int mail_check(void *tally, int from, uint32_t type, const void *payload, size_t bytes);

#endif
