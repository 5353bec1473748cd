/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files of the simulated job share. */
#ifndef HVD_AGREEMENT_SIM_INTERNAL_H
#define HVD_AGREEMENT_SIM_INTERNAL_H

#include "tests/collectives/agreement_sim/agreement_sim.h"

struct sim_message {
    struct sim_message *next;
    bool is_farewell; /* the message tells that rank 0 has ended the job */
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

/* Called by the table of tensors when an entry has ended. */
void sim_entry_ended(void *context, struct hvd_entry *entry, int status,
                     const char *text);

/* Tells all children that rank 0 has ended the job. */
void sim_send_farewell(struct sim_rank *rank);

/* Takes the oldest message of a link, which the caller frees; NULL: there is none. */
struct sim_message *sim_take(struct sim_link *link);

/* Adds a team of `size` ranks; returns its number. */
int sim_add_team(struct sim *sim, int size);

/* Starts or ends one batch of this rank; returns false if no batch can start or end. */
bool sim_run_something(struct sim_rank *rank);

/* Takes all events from the rank's agreement and carries them out; status is what a
 * function of the agreement has returned. Records a fault if that was an error. */
void sim_conclude(struct sim_rank *rank, int status);

#endif
