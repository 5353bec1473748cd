/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulated job share. */
#ifndef HVD_AGREEMENT_SIM_INTERNAL_H
#define HVD_AGREEMENT_SIM_INTERNAL_H

#include "tests/collectives/agreement_sim/agreement_sim.h"

struct sim_message {
    struct sim_message *next;
    bool is_farewell; /* rank 0 has ended the job */
    size_t bytes;
    char data[];
};

struct sim_batch {
    struct sim_batch *next;
    struct hvd_batch *batch;
    int team;
    int64_t number;
    bool is_started;
};

extern const struct hvd_agreement_ops sim_ops;

/* Of the table of tensors. */
void sim_entry_ended(void *context, struct hvd_entry *entry, int status,
                     const char *text);

/* Sends to the parent, or to all children. */
void sim_send_up(struct sim_rank *rank, const void *payload, size_t bytes);
void sim_send_down(struct sim_rank *rank, const void *payload, size_t bytes,
                   bool is_farewell);
/* The oldest message of a link, which the caller frees, or NULL. */
struct sim_message *sim_take(struct sim_link *link);

/* Adds a team of so many ranks; returns its number. */
int sim_add_team(struct sim *sim, int size);

/* Starts or ends one batch of this rank; false when there is none. */
bool sim_run_something(struct sim_rank *rank);

void sim_check_status(struct sim_rank *rank, int status);

#endif
