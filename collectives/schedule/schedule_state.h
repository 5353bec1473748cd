/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the algorithms of hvd_schedule share. Private to collectives/schedule.
 *
 * When a schedule is created, an algorithm is chosen. It fills in its setup, the number
 * of ticks and of signals, and the most steps that a tick may have. Later it emits the
 * steps of one tick at a time, in ascending order, so that the schedule can count the
 * signals and messages so far. */
#ifndef HVD_SCHEDULE_STATE_H
#define HVD_SCHEDULE_STATE_H

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/schedule.h"
#include "collectives/schedule/schedule_grid.h"
#include "collectives/schedule/schedule_parts.h"

/* The messages that the schedule had posted by the time a chunk had posted all of its
 * own. Waiting for so many ensures that those of the chunk are complete. */
struct hvd_schedule_mark {
    uint64_t sends;
    uint64_t recvs;
};

struct hvd_slice_ops;

/* Setup of sums in chunks (schedule_slices.h); one_shot uses chunk_elements and chunks
 * only. */
struct hvd_slices_setup {
    const struct hvd_slice_ops *ops;
    int64_t chunk_elements; /* elements of every chunk except the last */
    int64_t chunks;
    int slices; /* parts of a chunk, which different local ranks reduce */
    int owned; /* the largest number of slices that one rank of any node owns */
    /* there are two nodes, and each adds the other's slices as they arrive */
    bool is_pairwise;
    /* each node reduces its part of a slice for all nodes; false: it reduces all parts */
    bool is_cut;
    int messages; /* is_cut: the messages to other nodes that carry a slice down */
    struct hvd_grid grid; /* multilevel */
    struct hvd_grid_coords coords; /* position of my node in the grid */
    /* ticks from packing a chunk to having received the other nodes' parts of its
     * result */
    int finals_lag;
    int get_lag; /* ticks from packing a chunk to copying its result out */
    size_t send_slice_bytes; /* room for one slice in a SEND slot */
    size_t recv_slice_bytes; /* room for one slice in a RECV slot */
};

struct hvd_pair_setup {
    struct hvd_range sent; /* elements of my input that I send */
    /* elements of my output; the other rank sends the same ones of its input */
    struct hvd_range kept;
    int parts; /* 2: `sent` and `kept` are packed separately */
    int64_t piece_elements; /* elements of every piece except the last */
    int64_t pieces;
    int per_slot; /* pieces that share a slot */
    int ring; /* pieces in flight */
};

struct hvd_broadcast_setup {
    int64_t chunk_bytes;
    int64_t chunks;
    int owner; /* the local rank of my node that gets the data first */
    int parent; /* the rank that sends the data to my node; -1 on the root's node */
};

struct hvd_rounds_setup {
    int64_t chunk_bytes; /* the most of one block that a round moves */
    int64_t rounds; /* groups * chunks of the largest block */
    int groups; /* rounds that move one chunk of every block */
    int group_size; /* distances that a round covers */
    int distances; /* nodes for an allgather, ranks for an alltoall */
    int holders; /* allgather: the most ranks of one node that send to the same rank */
    int lag; /* ticks from posting a round to copying its data out */
};

struct hvd_cico_setup {
    int64_t piece_bytes; /* bytes of a block that a tick moves */
};

struct hvd_cma_blocks;

struct hvd_cma_setup {
    int64_t piece_bytes; /* bytes of a block that a tick moves */
    const struct hvd_cma_blocks *blocks;
    int64_t fetched; /* broadcast: bytes before this are fetched, the others stored */
    int64_t stores; /* broadcast: ticks in which the root stores */
};

struct hvd_cma_reduce_setup {
    int64_t piece_elements; /* elements of a share that a tick reduces or fetches */
    int64_t pieces; /* pieces of the largest share */
};

struct hvd_schedule {
    struct hvd_schedule_query query;
    struct hvd_algorithm_row choice; /* row of the table for the schedule's size */
    int grid_levels;
    struct hvd_schedule_facts facts;
    void (*emit)(struct hvd_schedule *schedule, int64_t tick);
    int node; /* number of this rank's node */
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
    /* How far the steps have been emitted. */
    int64_t next_tick;
    uint64_t signalled;
    struct hvd_schedule_mark posted;
    /* [slots]: mark of the chunk that last used the slot */
    struct hvd_schedule_mark *marks;
    /* [slots]: mark after the later messages of that chunk, such as its results */
    struct hvd_schedule_mark *final_marks;
    struct hvd_step *steps; /* [step_capacity], of the current tick */
    int step_capacity;
    int step_count;
};

/* Sets up a schedule whose query was checked: fills in facts, emit, setup and
 * step_capacity. Returns 0 or HVD_ERR_ARG. */
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

/* Whether the sizes, the memory and the layout allow an algorithm. hvd_cma_fits: whether
 * ranks can access memory of `bytes` in place. */
bool hvd_cico_fits(const struct hvd_schedule *schedule);
bool hvd_cma_fits(const struct hvd_schedule *schedule, int64_t bytes);
bool hvd_cma_reduce_fits(const struct hvd_schedule *schedule);
bool hvd_ll_fits_blocks(const struct hvd_schedule *schedule);
bool hvd_ll_fits_sum(const struct hvd_schedule *schedule);
bool hvd_multilevel_fits(const struct hvd_schedule *schedule);

#endif
