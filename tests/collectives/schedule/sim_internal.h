/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the simulator share: sim.c moves ranks, sim_steps.c takes
 * steps. */
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
    struct sim_message **all; /* of the present job, in the order of posting */
    size_t count;
    size_t room;
    size_t done; /* the first ones that are complete */
};

struct player {
    int rank;
    int node;
    int local_rank;
    char *locations[PLACE_KINDS];
    uint64_t counter;
    uint64_t counter_base; /* where the present job started */
    uint64_t turn; /* chunks of open schedules so far */
    bool is_open; /* the last schedule was */
    bool is_rolling; /* likewise */
    uint64_t counter_floor; /* what all counters have come to before a wait ends */
    struct messages sends;
    struct messages recvs;
    int job;
    int64_t tick; /* the next one */
    const struct hvd_step *steps;
    int step;
    int step_count;
    int64_t offered
        [SIM_MOST_OFFERS]; /* where what it offers begins, by the place in a slot */
    bool is_writing; /* the present step has left its garbage */
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

/* Bytes of one slot of a place. */
size_t sim_slot_bytes(const struct sim *sim, enum hvd_location_kind kind);

/* The memory of a place as player sees it; NULL when it is out of bounds or not his to
 * use. */
char *sim_memory(const struct sim *sim, const struct player *player,
                 const struct hvd_location *location, size_t bytes, bool is_written);

/* COPY, OFFER, FETCH, FETCH_REDUCE, STORE, and those in shared memory. */
enum outcome sim_reach(struct sim *sim, struct player *player,
                       const struct hvd_step *step);

/* Notes what is wrong with a rank; returns FAILED. */
enum outcome sim_fail(const struct player *player, const char *reason);

/* Takes a step, or leaves garbage where it will write and sets is_writing. */
enum outcome sim_execute(struct sim *sim, struct player *player,
                         const struct hvd_step *step);

/* Whether the first `value` messages of the player's job are complete. */
enum outcome sim_await_messages(const struct player *player, struct messages *messages,
                                uint64_t value);

#endif
