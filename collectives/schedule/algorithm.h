/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm a collective uses, by message size, on one shape of job. This is data:
 * it can be measured (hvd-bench --tune), written to a file (algorithm_table.h) and read
 * again.
 *
 * Sizes are bytes as hvd-bench counts them: of the whole buffer of a rank, the larger one
 * where input and output differ.
 *
 * No choice changes a result: all algorithms of a shape sum in the same order. Only
 * grid_levels affects the order, so there is one value for all sizes. */
#ifndef HVD_ALGORITHM_H
#define HVD_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_layout;

enum hvd_collective {
    HVD_COLL_ALLREDUCE,
    HVD_COLL_REDUCESCATTER,
    HVD_COLL_ALLGATHER,
    HVD_COLL_BROADCAST,
    HVD_COLL_ALLTOALL,
    HVD_COLLECTIVES
};

/* Each has a file of its name in this folder; algorithm_list.c says what it does. */
enum hvd_algorithm {
    /* Allreduce, reducescatter on one node. */
    HVD_ALGORITHM_LL, /* up to HVD_LINE_BYTES */
    HVD_ALGORITHM_ONE_SHOT,
    HVD_ALGORITHM_TWO_SHOT,
    /* If ranks can read each other's memory; else ONE_SHOT, allreduce of more than two
     * ranks TWO_SHOT. */
    HVD_ALGORITHM_CMA_REDUCE,
    /* The same on several nodes; MULTILEVEL takes the place of LINEAR and DIRECT where
     * grid_levels says so. */
    HVD_ALGORITHM_PAIR,
    HVD_ALGORITHM_LINEAR,
    HVD_ALGORITHM_DIRECT, /* three nodes and more */
    HVD_ALGORITHM_MULTILEVEL,
    /* Broadcast, allgather, alltoall on one node; CMA_READ and CMA_WRITE if ranks can
     * access each other's memory, else ROLLING or CICO. Small blocks of CICO go through
     * LL. */
    HVD_ALGORITHM_CICO,
    HVD_ALGORITHM_ROLLING,
    HVD_ALGORITHM_CMA_READ,
    HVD_ALGORITHM_CMA_WRITE,
    /* The only ones of broadcast, allgather and alltoall on several nodes. */
    HVD_ALGORITHM_TREE,
    HVD_ALGORITHM_RING,
    HVD_ALGORITHM_PAIRWISE,
    HVD_ALGORITHMS
};

enum {
    HVD_ALGORITHM_ROWS = 12,
};

/* The algorithm from some size on, up to the next row. */
struct hvd_algorithm_row {
    int64_t from;
    enum hvd_algorithm algorithm;
    /* LINEAR, DIRECT: one rank of each node works for all; else each has its slice. */
    bool has_one_slice;
    /* All but LL, PAIR and CMA: the longest piece, no longer than a slot. 0: a quarter of
     * the whole, but at least 64 KiB. */
    size_t chunk_bytes;
    size_t window_bytes; /* PAIR: what is under way at most. 0: 250 KiB */
    int line; /* of the file that says so; 0: built in */
};

struct hvd_algorithm_rows {
    int count; /* 0: that of the built-in table */
    struct hvd_algorithm_row rows[HVD_ALGORITHM_ROWS]; /* ascending; the first from 0 */
};

struct hvd_algorithm_choices {
    struct hvd_algorithm_rows of[HVD_COLLECTIVES];
    int grid_levels; /* 1 to HVD_GRID_LEVELS; 0: the fewest messages */
};

/* Processors for which the built-in table differs. */
enum hvd_processor {
    HVD_PROCESSOR_OTHER, /* as measured on Intel Xeon */
    HVD_PROCESSOR_AMD,
};

/* What tables distinguish jobs by. */
struct hvd_job_shape {
    int nodes;
    int ranks; /* of the node that has the most */
    /* Used on one node only, where all ranks have the same. */
    enum hvd_processor cpu;
};

/* With HVD_PROCESSOR_OTHER; see hvd_job_shape_here. */
struct hvd_job_shape hvd_job_shape_of(const struct hvd_layout *layout);

/* The processor of this machine; hvd_job_shape_of a job whose one node is this machine.
 * The rest is pure, and so the same on all machines. */
enum hvd_processor hvd_processor_here(void);
struct hvd_job_shape hvd_job_shape_here(const struct hvd_layout *layout);

/* The built-in table. */
void hvd_algorithm_choices_builtin(struct hvd_job_shape shape,
                                   struct hvd_algorithm_choices *choices);

/* On two nodes of two ranks, the chunk in which each slice is one message of the network:
 * from 256 KiB on 1.03 to 1.13 times as fast as a quarter of the whole. Else 0: with more
 * ranks it is about what fits a slot. */
size_t hvd_algorithm_message_chunk(struct hvd_job_shape shape);

/* The row for a size; choices have rows for every collective. */
const struct hvd_algorithm_row *
hvd_algorithm_for(const struct hvd_algorithm_choices *choices,
                  enum hvd_collective collective, int64_t bytes);

/* Why a row does not fit a shape, or NULL. most: the largest size of the row. */
const char *hvd_algorithm_misfit(const struct hvd_algorithm_row *choice,
                                 enum hvd_collective collective,
                                 struct hvd_job_shape shape, int64_t most);

/* "allreduce"; the number of a name, or -1. */
const char *hvd_collective_name(enum hvd_collective collective);
int hvd_collective_find(const char *name);

/* "two_shot", and a sentence about it. find: the number of a name, -1 if there is none;
 * of the names in tables of earlier snapshots, which mean what they meant for that
 * collective, too. */
const char *hvd_algorithm_name(enum hvd_algorithm algorithm);
const char *hvd_algorithm_does(enum hvd_algorithm algorithm);
int hvd_algorithm_find(const char *name, enum hvd_collective collective);

/* Whether rows of the collective may choose the algorithm, for some shape. */
bool hvd_algorithm_is_for(enum hvd_algorithm algorithm, enum hvd_collective collective);

#endif
