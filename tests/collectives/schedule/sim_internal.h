/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the simulator: sim.c moves ranks, sim_steps.c and sim_reach.c
 * execute steps. */
#ifndef HVD_SIM_INTERNAL_H
#define HVD_SIM_INTERNAL_H

#include "tests/collectives/schedule/sim.h"
#include "tests/collectives/schedule/sim_network.h"

enum {
    PLACE_KINDS = HVD_LOCATION_RECV + 1,
    GARBAGE = 0xa5,
    SIM_MOST_OFFERS = 160,
};

enum outcome {
    WAITS,
    MOVED,
    FAILED,
};

struct messages {
    struct sim_message **all; /* messages of the current job, in the order of posting */
    size_t count;
    size_t room;
    size_t done; /* number of messages at the beginning of `all` that are complete */
};

struct player {
    int rank;
    int node;
    int local_rank;
    char *locations[PLACE_KINDS];
    uint64_t counter;
    uint64_t counter_base; /* the counter when the current job started */
    /* chunks of all open and rolling schedules so far; rotates the slots (schedule.h) */
    uint64_t turn;
    /* an open schedule has run, and the signal that it omits has not been made up for */
    bool is_open;
    bool is_rolling; /* the last schedule was rolling */
    /* the value that all counters must reach before any wait ends */
    uint64_t counter_floor;
    struct messages sends;
    struct messages recvs;
    int job;
    int64_t tick; /* the next tick */
    const struct hvd_step *steps;
    int step;
    int step_count;
    /* where the memory that the rank offers begins in its input or output; indexed by the
     * place of the OFFER in its slot */
    int64_t offered[SIM_MOST_OFFERS];
    bool is_writing; /* the current step has written garbage, but not yet its result */
};

struct sim {
    const struct hvd_layout *layout;
    const struct hvd_geometry *geometry;
    const struct sim_job *jobs;
    int job_count;
    const struct sim_options *options;
    uint64_t random;
    struct sim_network *network;
    struct player *players;
};

uint64_t sim_random_below(struct sim *sim, uint64_t end);

/* Returns the size of a location's slot in bytes. */
size_t sim_slot_bytes(const struct sim *sim, enum hvd_location_kind kind);

/* Returns the memory of a location, for the step that the player executes; NULL if it is
 * out of bounds, or if the step would write another player's memory. */
char *sim_memory(const struct sim *sim, const struct player *player,
                 const struct hvd_location *location, size_t bytes, bool is_written);

/* Executes the steps that access inputs and outputs in place: COPY, OFFER, FETCH,
 * FETCH_REDUCE and STORE. */
enum outcome sim_reach(struct sim *sim, struct player *player,
                       const struct hvd_step *step);

/* Notes the failure of a rank; returns FAILED. */
enum outcome sim_fail(const struct player *player, const char *reason);

/* Executes a step. PUT, REDUCE_LOCAL and REDUCE_NODES take two calls: the first writes
 * garbage where the step will write, and sets is_writing. */
enum outcome sim_execute(struct sim *sim, struct player *player,
                         const struct hvd_step *step);

/* Returns MOVED if the first `value` messages of the player's job are complete, else
 * WAITS. Fails if fewer messages were posted. */
enum outcome sim_await_messages(const struct player *player, struct messages *messages,
                                uint64_t value);

#endif
