/* SPDX-License-Identifier: Apache-2.0 */
/* A job of agreements in one process: messages wait in queues until they are delivered, a
 * batch ends some time after its ranks have started it. A random number chooses what
 * happens next, so that races happen often. It checks all that agreement_sim_check.h
 * says. */
#ifndef HVD_AGREEMENT_SIM_H
#define HVD_AGREEMENT_SIM_H

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/tensor_table.h"
#include "collectives/request/batch.h"
#include "pmix_boot/boot.h"

struct sim_batch;
struct sim_check;
struct sim_message;

enum {
    SIM_MOST_SETS = 4096 /* process sets at the same time */
};

/* Messages from one neighbour, oldest first. */
struct sim_link {
    struct sim_message *first;
    struct sim_message *last;
};

struct sim_rank {
    struct sim *sim;
    int rank;
    struct hvd_agreement *agreement;
    struct hvd_tensor_table tensors;
    struct hvd_sets sets;
    struct sim_rank *parent; /* NULL: it is rank 0 */
    int branch; /* of its parent: sets.h */
    struct sim_rank **children; /* [child_count] */
    int child_count;
    struct sim_link *inbox; /* [1 + child_count]: of the parent, of each child */
    struct sim_batch *batches; /* to run, oldest first */
    int teams[SIM_MOST_SETS]; /* that run the batches of each process set */
    bool is_waited;
    bool is_paused[SIM_MOST_SETS]; /* what runs the replayed batches of each set */
    /* since it had nothing to do, until something happens to it, or wake_ns */
    bool is_asleep;
    int64_t wake_ns; /* -1: never */
    bool has_left; /* nothing more is agreed here */
    int ended; /* entries */
    int failed;
    int joins; /* that have ended */
    bool is_frozen; /* does nothing, until it is set to false again */
    bool gave_up;
    int gave_up_for; /* the rank that does not answer, or -1 */
    char reason[256];
};

/* One batch of a team. */
struct sim_round {
    int starters; /* ranks that have started it */
    bool has_root; /* one of them has what is broadcast */
    struct sim_seen_batch *seen; /* by the checks */
};

/* What runs batches in one order: a queue of the global process set, or another set. */
struct sim_team {
    int size;
    int set; /* its number */
    int *ranks; /* [size]; NULL: of a queue */
    bool *knows; /* [job size] it has been added there */
    int64_t *next; /* [job size] the number of each rank's next batch */
    struct sim_round *rounds; /* [count] */
    int64_t count;
    int64_t capacity;
};

struct sim {
    struct hvd_layout layout;
    struct hvd_boot_peer *peers; /* [layout.size] */
    char (*hosts)[16]; /* [layout.nodes] */
    struct sim_rank *ranks;
    struct sim_team *teams;
    int team_count;
    struct sim_check *check;
    int64_t now_ns;
    int64_t last_end_ns; /* of an entry */
    uint64_t random;
    char fault[512]; /* the first thing that must not happen; "" */
    int64_t moves;
    size_t most_bytes; /* of a message so far */
    int slow_rank; /* does little while others have something to do; may be none */
    bool holds_batches; /* none starts or ends */
    bool is_leaving; /* rank 0 is to end the job */
    int64_t replayed_in_sets; /* batches of further sets, on all ranks */
    int64_t void_in_sets; /* of them those that stood in */
};

/* nodes: ranks per node, ended by 0. Settings: the defaults of Horovod if NULL. */
void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed);
void sim_finish(struct sim *sim);

struct hvd_agreement_settings sim_settings(void);

/* Tensors of this rank, one group if there are several. The caller frees the request when
 * it has ended. */
struct hvd_request *sim_submit(struct sim *sim, int rank,
                               const struct hvd_descriptor *const *tensors, int count);
/* A thread of this rank waits now, or does not. */
void sim_wait(struct sim *sim, int rank, bool is_waited);
bool sim_has_ended(const struct hvd_request *request);

/* An allreduce of a row of float32. */
struct hvd_descriptor sim_allreduce(const char *name, int64_t elements);

/* Does one random thing that can be done: a message, the start or the end of a batch,
 * progress of a rank. When there is none, time passes until something is due. False:
 * nothing will happen for patience_ns. */
bool sim_step(struct sim *sim, int64_t patience_ns);

/* All that happens within so much time. */
void sim_pass(struct sim *sim, int64_t ns);

/* Until nothing happens without time passing, or a fault. */
void sim_settle(struct sim *sim);

/* From now on rank 0 ends the job, as a rank's hvd_shutdown does. */
void sim_leave(struct sim *sim);

/* Rank 0 says from now on how all ranks fuse. */
int sim_tune(struct sim *sim, int64_t threshold, int64_t cycle_ns);

/* A number below `below`. */
unsigned sim_draw(struct sim *sim, unsigned below);

void sim_fault(struct sim *sim, const char *format, ...) HVD_PRINTF(2, 3);

#endif
