/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a simulated allreduce: where it is in its schedule, and its messages. */
#ifndef HVD_SIMULATE_PLAYER_H
#define HVD_SIMULATE_PLAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/schedule/schedule.h"

/* A receive that was posted. */
struct simulate_receive {
    bool is_done;
    double work; /* seconds, with what has come for it */
    int next; /* posted for the same sender; -1: none */
};

/* What a rank gets from another: the n-th message is for the n-th receive. */
struct simulate_sender {
    int rank; /* -1: unused */
    int first; /* receive that waits; -1: none */
    int last;
    int early; /* messages that wait for a receive */
};

struct simulate_arrival {
    int from;
    double bytes;
};

enum simulate_doing {
    SIMULATE_WAITING,
    SIMULATE_STEPPING,
    SIMULATE_HANDLING, /* a message that came in */
};

/* What came before the present call. */
struct simulate_base {
    uint64_t signals;
    uint64_t sends;
    uint64_t receives;
};

struct simulate_player {
    struct hvd_schedule *schedule;
    int node; /* among those simulated */
    int local_rank;
    int calls; /* allreduces that remain, the present one too */
    struct simulate_base base;
    int64_t tick;
    const struct hvd_step *steps;
    int step;
    int step_count;
    enum simulate_doing doing;
    bool has_ended;
    double end;
    uint64_t signals;
    uint64_t seen; /* of them, by the others */
    uint64_t sends;
    uint64_t sent; /* of them */
    struct simulate_receive *receives; /* [receive_count] */
    size_t receive_count;
    size_t receive_capacity;
    size_t received; /* the first ones that are done */
    struct simulate_sender *senders; /* [sender_capacity], by hash */
    size_t sender_count;
    size_t sender_capacity;
    struct simulate_arrival
        *arrivals; /* [arrival_count], from arrival_first on not handled */
    size_t arrival_first;
    size_t arrival_count;
    size_t arrival_capacity;
};

void simulate_player_finish(struct simulate_player *player);

/* A receive is posted; a message from a rank has been handled. */
void simulate_player_post(struct simulate_player *player, int from, double work);
void simulate_player_handle(struct simulate_player *player, int from);

/* Whether messages from a rank wait for a receive; the work of the receive that waits for the next
 * one, or 0. */
bool simulate_player_has_early(const struct simulate_player *player, int from);
double simulate_player_awaited_work(const struct simulate_player *player, int from);

/* A message comes in; the oldest that is to be handled is taken. */
void simulate_player_arrive(struct simulate_player *player, int from, double bytes);
bool simulate_player_has_arrivals(const struct simulate_player *player);
struct simulate_arrival simulate_player_take(struct simulate_player *player);

/* Goes to the next step; false at the end of the last call. */
bool simulate_player_advance(struct simulate_player *player);

#endif
