/* SPDX-License-Identifier: Apache-2.0 */
/* A job of agreements in one process: messages wait in queues until the test delivers them, a
 * batch ends some time after all its ranks have started it. Order and time are the test's: a
 * random number chooses what happens next, so that races happen often.
 *
 * Checks by itself that all ranks of a set start the same batches of a lane in the same order. */
#ifndef HVD_AGREEMENT_SIM_H
#define HVD_AGREEMENT_SIM_H

#include "collectives/agreement.h"

struct sim_batch;
struct sim_message;

struct sim_rank {
    struct sim *sim;
    int rank;
    struct hvd_agreement *agreement;
    struct sim_message *from_parent; /* oldest first */
    struct sim_message *from_child; /* of all children, in order per child */
    struct sim_batch *batches; /* to run, oldest first */
    bool is_waited;
    bool is_paused;
    int ended; /* entries */
    int failed;
    bool gave_up;
};

struct sim {
    struct hvd_layout layout;
    struct sim_rank *ranks;
    int64_t now_ns;
    unsigned seed;
    char fault[256]; /* the first thing that must not happen; "" */
    int64_t moves;
};

/* nodes: ranks per node, ended by 0. Settings: the defaults of Horovod if NULL. */
void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed);
void sim_finish(struct sim *sim);

struct hvd_agreement_settings sim_settings(void);

/* A tensor of this name on this rank: an allreduce of float32. The caller frees the request when
 * it has ended. */
struct hvd_request *sim_submit(struct sim *sim, int rank, const char *name,
                               int64_t elements);
struct hvd_request *sim_submit_as(struct sim *sim, int rank,
                                  const struct hvd_proposal *proposal);
bool sim_has_ended(const struct hvd_request *request);

/* Does one random thing that can be done: a message, the end of a batch, progress of a rank. When
 * there is none, time passes until something is due. False: nothing will ever happen. */
bool sim_step(struct sim *sim);

/* Until nothing happens without time passing, or a fault. */
void sim_settle(struct sim *sim);

void sim_fault(struct sim *sim, const char *format, ...);

#endif
