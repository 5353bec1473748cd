/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that run their schedules against cards, cores and memory that they share. */
#ifndef HVD_SIMULATE_WORLD_H
#define HVD_SIMULATE_WORLD_H

#include "contrib/bench/simulate/events.h"
#include "contrib/bench/simulate/machine.h"
#include "contrib/bench/simulate/node.h"
#include "contrib/bench/simulate/player.h"

enum simulate_happening {
    SIMULATE_WORK_ENDS, /* who: a node; value: its version */
    SIMULATE_MESSAGE_LEFT, /* who: a player */
    SIMULATE_MESSAGE_BEGINS, /* to come in. who: a player; value: the sending player, bytes */
    SIMULATE_MESSAGE_COMES, /* likewise: all of it is there */
    SIMULATE_SIGNAL_SEEN, /* who: a player */
    SIMULATE_TURN_COMES, /* who: a player; value: the version of its core */
};

/* When a card is free again, each direction: one message after the other. */
struct simulate_card {
    double out;
    double in;
};

struct simulate_world {
    const struct simulate_machine *machine;
    const struct hvd_layout *layout;
    bool is_mirrored; /* only the first node; it stands for its peers */
    int node_count; /* simulated */
    int player_count; /* their ranks */
    struct simulate_player *players;
    struct simulate_node *nodes;
    struct simulate_card *cards; /* [node_count * machine->cards] */
    struct simulate_events events;
};

/* Schedules of an allreduce of `count` elements of float32. End with finish in any case. */
int simulate_world_init(struct simulate_world *world, int64_t count,
                        struct hvd_error *err);
void simulate_world_finish(struct simulate_world *world);

/* Until nothing happens any more. Returns 0 and when the last rank ended, or HVD_ERR_PEER when some
 * wait for ever. */
int simulate_world_run(struct simulate_world *world, double *seconds);

#endif
