/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that run their schedules against network cards and memory that they share. */
#ifndef HVD_SIMULATE_WORLD_H
#define HVD_SIMULATE_WORLD_H

#include <stdbool.h>

#include "collectives/schedule/schedule.h"
#include "contrib/bench/simulate/events.h"
#include "contrib/bench/simulate/machine.h"

/* A posted receive: the n-th message from a rank is for the n-th receive from it. */
struct simulate_receive {
    int from;
    bool is_done;
    double work; /* seconds that the rank adds up once the message is there */
};

/* A message that the rank has not looked at yet. */
struct simulate_arrival {
    int from;
    double bytes;
};

struct simulate_player {
    struct hvd_schedule *schedule;
    int node; /* among those simulated */
    int local_rank;
    int64_t tick;
    const struct hvd_step *steps; /* of the tick */
    int step;
    int step_count;
    bool is_working;
    bool is_handling; /* its work is an arrival, not a step */
    bool has_ended;
    double left; /* seconds of work, if it had the memory alone */
    double end;
    uint64_t signals;
    uint64_t seen; /* of them, by the other ranks of the node */
    uint64_t sends;
    uint64_t sent; /* of them, that have left the card */
    struct simulate_receive *receives; /* [receive_count] */
    size_t receive_count, receive_capacity;
    size_t received; /* the first ones that are done */
    int *early; /* [early_count] senders of messages that came before their receive */
    size_t early_count, early_capacity;
    struct simulate_arrival *arrivals; /* those from arrival_first on are not handled */
    size_t arrival_first, arrival_count, arrival_capacity;
};

/* Memory is shared fairly: a rank alone works at full speed, and all ranks of a node together not
 * faster than its memory. */
struct simulate_node {
    int first; /* player */
    int ranks;
    int working;
    double now;
    uint64_t version; /* changes with each start and end of work */
};

/* When a card is free again, in each direction: it takes one message after the other. */
struct simulate_card {
    double out;
    double in;
};

struct simulate_world {
    const struct simulate_machine *machine;
    const struct hvd_layout *layout;
    bool is_mirrored; /* the first node is simulated and stands for its peers */
    int node_count; /* simulated */
    int player_count; /* their ranks */
    struct simulate_player *players;
    struct simulate_node *nodes;
    struct simulate_card *cards; /* [node_count * machine->cards] */
    struct simulate_events events;
};

/* Makes the schedules of an allreduce of `count` elements of float32. End with finish in any
 * case. */
int simulate_world_init(struct simulate_world *world, int64_t count,
                        struct hvd_error *err);
void simulate_world_finish(struct simulate_world *world);

/* Runs all ranks to their end; *seconds is when the last one ends. HVD_ERR_PEER if some wait
 * forever. */
int simulate_world_run(struct simulate_world *world, double *seconds);

#endif
