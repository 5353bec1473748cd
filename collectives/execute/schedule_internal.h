/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms behind hvd_schedule share. Private to collectives/execute*.c.
 *
 * Creating a schedule plans: one algorithm fills its plan, the number of ticks and of signals,
 * and how many steps a tick may need. Asking for a tick emits its steps. Ticks come in order,
 * so that the schedule can count the signals and messages that it has emitted. */
#ifndef HVD_SCHEDULE_INTERNAL_H
#define HVD_SCHEDULE_INTERNAL_H

#include "collectives/execute/choice.h"
#include "collectives/execute/schedule.h"
#include "collectives/execute/schedule_grid.h"
#include "collectives/execute/schedule_ranks.h"

/* How many messages were posted when a chunk had posted all of its own. */
struct hvd_schedule_mark {
    uint64_t sends;
    uint64_t recvs;
};

struct hvd_allreduce_plan {
    int64_t chunk_elements; /* of every chunk but the last */
    int64_t chunks;
    int lanes; /* parts of a chunk that are reduced by different local ranks */
    int carried; /* the most lanes that one rank of any node carries */
    bool is_full; /* one node, and every rank reduces all that it needs */
    bool is_line; /* full, through LINE */
    bool is_pairwise; /* of two nodes, each adds up the other's lanes while they come */
    bool is_direct; /* nodes reduce a part of each lane for the others; else all of it */
    bool is_grid; /* they talk to those of their rows of the grid only */
    struct hvd_grid grid;
    struct hvd_grid_seat seat; /* of my node */
    int finals_lag; /* ticks from packing a chunk to having the other nodes' parts of it */
    int get_lag; /* ticks from packing a chunk to copying its result out */
    size_t send_lane_bytes; /* room of one lane in a SEND slot */
    size_t recv_lane_bytes; /* and in a RECV slot */
};

struct hvd_pair_plan {
    struct hvd_range sent; /* elements of the input */
    struct hvd_range kept; /* of the other's input the same comes, for my output */
    int parts; /* 2: sent and kept are packed apart */
    int64_t piece_elements; /* of every piece but the last one */
    int64_t pieces;
    int per_slot; /* how many share a slot */
    int ring; /* how many are under way */
};

struct hvd_broadcast_plan {
    int64_t chunk_bytes;
    int64_t chunks;
    int carrier; /* the local rank that has the data first on my node */
    int parent; /* the rank that sends it to my node; -1 on the root's node */
};

struct hvd_rounds_plan {
    int64_t chunk_bytes; /* the most of one block that a round moves */
    int64_t rounds; /* groups * chunks of the largest block */
    int groups; /* rounds that move one chunk of every block */
    int group_size; /* distances that a round covers */
    int distances; /* nodes for allgather, ranks for alltoall */
    int holders; /* allgather: most sources for which one rank receives at one distance */
    int lag; /* ticks from posting a round to copying its data out */
};

struct hvd_local_plan {
    int64_t piece_bytes; /* that a tick moves of a block */
    bool is_line; /* through LINE */
};

struct hvd_single_plan {
    int64_t piece_bytes; /* that a tick moves of a block */
    int64_t fetched; /* broadcast: bytes before this are fetched, the others stored */
    int64_t stores; /* the root's ticks in which it stores */
};

struct hvd_sum_plan {
    int64_t piece_elements; /* of a share that a tick adds up, or fetches */
    int64_t pieces; /* of the largest share */
};

struct hvd_schedule {
    struct hvd_schedule_query query;
    struct hvd_choice choice; /* for its size */
    int grid_levels;
    const char *name;
    void (*emit)(struct hvd_schedule *schedule, int64_t tick);
    int64_t ticks;
    uint64_t signals;
    int64_t turns;
    bool is_rolling;
    bool is_offered; /* a sum whose input and output others read where they are */
    int node; /* mine */
    int local_rank;
    int local_size;
    union {
        struct hvd_allreduce_plan allreduce;
        struct hvd_pair_plan pair;
        struct hvd_broadcast_plan broadcast;
        struct hvd_rounds_plan rounds;
        struct hvd_single_plan single;
        struct hvd_sum_plan sum;
        struct hvd_local_plan local;
    } plan;
    /* What was emitted since tick 0. */
    int64_t next_tick;
    uint64_t signalled;
    struct hvd_schedule_mark posted;
    struct hvd_schedule_mark *marks; /* [slots]: of the chunk that last used the slot */
    struct hvd_schedule_mark *final_marks; /* [slots]: likewise, second exchange */
    struct hvd_step *steps; /* [step_capacity] of the present tick */
    int step_capacity;
    int step_count;
};

/* Planners: check the query, fill name, emit, ticks, signals, plan and step_capacity. */
int hvd_schedule_plan_allreduce(struct hvd_schedule *schedule, struct hvd_error *err);
/* As plan_allreduce, whose checks have passed, for two ranks on two nodes. */
int hvd_schedule_plan_pair(struct hvd_schedule *schedule, struct hvd_error *err);
int hvd_schedule_plan_broadcast(struct hvd_schedule *schedule, struct hvd_error *err);
int hvd_schedule_plan_allgather(struct hvd_schedule *schedule, struct hvd_error *err);
int hvd_schedule_plan_alltoall(struct hvd_schedule *schedule, struct hvd_error *err);

/* Whether blocks of `bytes` are read where they are; then as the planners above, whose
 * checks have passed. most: of the largest block. */
bool hvd_schedule_is_single(const struct hvd_schedule *schedule, int64_t bytes);
void hvd_schedule_plan_single_blocks(struct hvd_schedule *schedule, int64_t most);
void hvd_schedule_plan_single_broadcast(struct hvd_schedule *schedule);

/* Likewise of sums; returns 0. */
bool hvd_schedule_is_single_sum(const struct hvd_schedule *schedule);
int hvd_schedule_plan_single_sum(struct hvd_schedule *schedule);

/* Likewise of sums in memory that all local ranks map; returns 0. */
bool hvd_schedule_is_shared_sum(const struct hvd_schedule *schedule);
int hvd_schedule_plan_shared_sum(struct hvd_schedule *schedule);

/* What is chosen, or what takes its place where memory cannot be read where it is. */
enum hvd_algorithm hvd_schedule_through_slots(const struct hvd_schedule *schedule);

/* Whether blocks go through slots of one node; then likewise. */
bool hvd_schedule_is_local(const struct hvd_schedule *schedule);
void hvd_schedule_plan_local(struct hvd_schedule *schedule, int64_t most);
void hvd_schedule_plan_rolling(
    struct hvd_schedule *schedule); /* a broadcast on one node */

#endif
