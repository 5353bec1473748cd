/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the agreement of all ranks of a job in one process. Messages wait in queues
 * until they are delivered, and a batch ends some time after its ranks have started it. A
 * random number chooses the next event, so that races are frequent. The simulated job
 * checks the promises of agreement_sim_check.h. */
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
    SIM_MOST_SETS = 4096 /* most process sets at the same time */
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
    struct sim_rank *parent; /* NULL for rank 0 */
    int branch; /* number of this rank's branch at its parent (sets.h) */
    struct sim_rank **children; /* [child_count] */
    int child_count;
    /* [1 + child_count]: messages from the parent, then from each child */
    struct sim_link *inbox;
    struct sim_batch *batches; /* batches to run, oldest first */
    int teams[SIM_MOST_SETS]; /* the team of each process set */
    bool is_waited;
    bool is_paused[SIM_MOST_SETS]; /* the set's replayed batches are paused */
    /* the rank had nothing to do: it sleeps until an event, or until wake_ns */
    bool is_asleep;
    int64_t wake_ns; /* -1: never */
    bool has_left; /* its part of the job has ended */
    int ended; /* number of entries that have ended */
    int failed;
    int joins; /* number of joins that have ended */
    bool is_frozen; /* does nothing while this is set */
    bool gave_up;
    int gave_up_for; /* the rank that does not answer, or -1 */
    char reason[256];
    bool is_mute; /* never tells where it is, though it does everything else */
};

/* A batch of a team, as all ranks together run it. */
struct sim_round {
    int starters; /* number of ranks that have started it */
    bool has_root; /* the broadcast's root has started it */
    struct sim_seen_batch *seen; /* what the checks know of the batch */
};

/* Ranks that run batches in one order: a queue of the global process set, or the team of
 * another set. */
struct sim_team {
    int size;
    int set; /* number of the process set */
    int *ranks; /* [size]; NULL for a queue */
    bool *knows; /* [job size]: which ranks have added the team */
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
    int64_t last_end_ns; /* when the last entry ended */
    uint64_t random;
    char fault[512]; /* the first fault; "": none */
    int64_t moves;
    size_t most_bytes; /* length of the longest message so far */
    int slow_rank; /* a rank that rarely acts while others can; -1: none */
    char stacks[128]; /* "2 4 ": the ranks whose stacks rank 0 has got, in this order */
    bool holds_batches; /* no batch starts or ends */
    bool is_leaving; /* rank 0 is about to end the job */
    /* batches of sets other than the global one, on all ranks */
    int64_t replayed_in_sets;
    int64_t void_in_sets; /* cancelled batches among these */
};

/* nodes has the number of ranks on each node, and 0 at the end. settings may be NULL, for
 * Horovod's defaults. */
void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed);
void sim_finish(struct sim *sim);

struct hvd_agreement_settings sim_settings(void);

/* Submits tensors on rank `rank`, as one group if there are several. The caller frees the
 * request when it has ended. */
struct hvd_request *sim_submit(struct sim *sim, int rank,
                               const struct hvd_descriptor *const *tensors, int count);
/* Begins or ends the wait of a thread of this rank for a request. */
void sim_wait(struct sim *sim, int rank, bool is_waited);
bool sim_has_ended(const struct hvd_request *request);

/* Makes the descriptor of an allreduce of a vector of float32. */
struct hvd_descriptor sim_allreduce(const char *name, int64_t elements);

/* Makes one random event happen: a message is delivered, a batch starts or ends, or a
 * rank's agreement makes progress. If none is possible now, time passes until the next
 * deadline of a rank. Returns false if no deadline comes within patience_ns. */
bool sim_step(struct sim *sim, int64_t patience_ns);

/* Runs the job for this much simulated time. */
void sim_pass(struct sim *sim, int64_t ns);

/* Runs the job until nothing can happen before the next deadline, or until a fault. */
void sim_settle(struct sim *sim);

/* Runs the job until nothing can happen within patience_ns, or until a fault. Drops the
 * requests, each of which must have succeeded by then. */
void sim_finish_requests(struct sim *sim, struct hvd_request *const *requests, int count,
                         int64_t patience_ns);

/* Lets rank 0 end the job, like hvd_shutdown. */
void sim_leave(struct sim *sim);

/* Lets rank 0 change the fusion threshold and cycle time of all ranks. */
int sim_tune(struct sim *sim, int64_t threshold, int64_t cycle_ns);

/* Returns a random number below `below`. */
unsigned sim_draw(struct sim *sim, unsigned below);

void sim_fault(struct sim *sim, const char *format, ...) HVD_PRINTF(2, 3);

#endif
