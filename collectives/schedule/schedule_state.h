/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the algorithms of hvd_schedule share. Private to collectives/schedule.
 *
 * Creating a schedule chooses an algorithm, which fills in its setup, the number of ticks
 * and of signals, and how many steps a tick may need. Asking for a tick emits its steps.
 * Ticks come in order, so that the schedule can count the signals and messages that it
 * has emitted. */
#ifndef HVD_SCHEDULE_STATE_H
#define HVD_SCHEDULE_STATE_H

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/schedule.h"
#include "collectives/schedule/schedule_grid.h"
#include "collectives/schedule/schedule_parts.h"

/* How many messages were posted when a chunk had posted all of its own. */
struct hvd_schedule_mark {
    uint64_t sends;
    uint64_t recvs;
};

struct hvd_slice_ops;

/* Sums in chunks (schedule_slices.h); one_shot uses chunk_elements and chunks only. */
struct hvd_slices_setup {
    const struct hvd_slice_ops *ops;
    int64_t chunk_elements; /* of every chunk but the last */
    int64_t chunks;
    int slices; /* parts of a chunk that are reduced by different local ranks */
    int owned; /* the most slices that one rank of any node owns */
    bool is_pairwise; /* of two nodes, each adds up the other's slices while they come */
    bool is_cut; /* nodes reduce a part of each slice for the others; else all of it */
    struct hvd_grid grid; /* multilevel */
    struct hvd_grid_coords coords; /* of my node */
    /* ticks from packing a chunk to having the other nodes' parts of it */
    int finals_lag;
    int get_lag; /* ticks from packing a chunk to copying its result out */
    size_t send_slice_bytes; /* room of one slice in a SEND slot */
    size_t recv_slice_bytes; /* and in a RECV slot */
};

struct hvd_pair_setup {
    struct hvd_range sent; /* elements of the input */
    struct hvd_range kept; /* of the other's input the same comes, for my output */
    int parts; /* 2: sent and kept are packed apart */
    int64_t piece_elements; /* of every piece but the last one */
    int64_t pieces;
    int per_slot; /* how many share a slot */
    int ring; /* how many are under way */
};

struct hvd_broadcast_setup {
    int64_t chunk_bytes;
    int64_t chunks;
    int owner; /* the local rank that has the data first on my node */
    int parent; /* the rank that sends it to my node; -1 on the root's node */
};

struct hvd_rounds_setup {
    int64_t chunk_bytes; /* the most of one block that a round moves */
    int64_t rounds; /* groups * chunks of the largest block */
    int groups; /* rounds that move one chunk of every block */
    int group_size; /* distances that a round covers */
    int distances; /* nodes for allgather, ranks for alltoall */
    int holders; /* allgather: most sources for which one rank receives at one distance */
    int lag; /* ticks from posting a round to copying its data out */
};

struct hvd_cico_setup {
    int64_t piece_bytes; /* that a tick moves of a block */
};

struct hvd_cma_blocks;

struct hvd_cma_setup {
    int64_t piece_bytes; /* that a tick moves of a block */
    const struct hvd_cma_blocks *blocks;
    int64_t fetched; /* broadcast: bytes before this are fetched, the others stored */
    int64_t stores; /* the root's ticks in which it stores */
};

struct hvd_cma_reduce_setup {
    int64_t piece_elements; /* of a share that a tick adds up, or fetches */
    int64_t pieces; /* of the largest share */
};

struct hvd_schedule {
    struct hvd_schedule_query query;
    struct hvd_algorithm_row choice; /* for its size */
    int grid_levels;
    struct hvd_schedule_facts facts;
    void (*emit)(struct hvd_schedule *schedule, int64_t tick);
    int node; /* mine */
    int local_rank;
    int local_size;
    union {
        struct hvd_slices_setup slices;
        struct hvd_pair_setup pair;
        struct hvd_broadcast_setup broadcast;
        struct hvd_rounds_setup rounds;
        struct hvd_cma_reduce_setup cma_reduce;
        struct hvd_cico_setup cico;
        struct hvd_cma_setup cma;
    } setup;
    /* How far the ticks have been emitted. */
    int64_t next_tick;
    uint64_t signalled;
    struct hvd_schedule_mark posted;
    struct hvd_schedule_mark *marks; /* [slots]: of the chunk that last used the slot */
    struct hvd_schedule_mark *final_marks; /* [slots]: likewise, of its results */
    struct hvd_step *steps; /* [step_capacity] of the present tick */
    int step_capacity;
    int step_count;
};

/* Each algorithm sets up a schedule whose query was checked: fills in facts, emit, setup
 * and step_capacity. Returns 0 or HVD_ERR_ARG. */
typedef int hvd_algorithm_set_up(struct hvd_schedule *schedule, struct hvd_error *err);
hvd_algorithm_set_up hvd_cico_set_up;
hvd_algorithm_set_up hvd_cma_read_set_up;
hvd_algorithm_set_up hvd_cma_reduce_set_up;
hvd_algorithm_set_up hvd_cma_write_set_up;
hvd_algorithm_set_up hvd_direct_set_up;
hvd_algorithm_set_up hvd_linear_set_up;
hvd_algorithm_set_up hvd_ll_set_up;
hvd_algorithm_set_up hvd_multilevel_set_up;
hvd_algorithm_set_up hvd_one_shot_set_up;
hvd_algorithm_set_up hvd_pair_set_up;
hvd_algorithm_set_up hvd_pairwise_set_up;
hvd_algorithm_set_up hvd_ring_set_up;
hvd_algorithm_set_up hvd_rolling_set_up;
hvd_algorithm_set_up hvd_tree_set_up;
hvd_algorithm_set_up hvd_two_shot_set_up;

/* Whether the sizes, the memory and the layout allow an algorithm. cma_fits: whether
 * memory of `bytes` can be read or written where it is. */
bool hvd_cico_fits(const struct hvd_schedule *schedule);
bool hvd_cma_fits(const struct hvd_schedule *schedule, int64_t bytes);
bool hvd_cma_reduce_fits(const struct hvd_schedule *schedule);
bool hvd_ll_fits_blocks(const struct hvd_schedule *schedule);
bool hvd_ll_fits_sum(const struct hvd_schedule *schedule);
bool hvd_multilevel_fits(const struct hvd_schedule *schedule);

#endif
