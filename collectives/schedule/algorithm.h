/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the algorithm of a collective, by message size, for one shape of job.
 * This is data: it can be measured (hvd-bench --tune), written to a file
 * (algorithm_table.h) and read again.
 *
 * Sizes are bytes as hvd-bench counts them: the whole buffer of a rank, the larger one
 * where input and output differ.
 *
 * No choice changes a result: all algorithms of a shape sum in the same order. Only
 * grid_levels affects the order, so it has one value for all sizes. */
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

/* Each algorithm is a file of its name in this folder; algorithm_list.c describes it. */
enum hvd_algorithm {
    /* For allreduce and reducescatter on one node. */
    HVD_ALGORITHM_LL, /* up to HVD_LINE_BYTES */
    HVD_ALGORITHM_ONE_SHOT,
    HVD_ALGORITHM_TWO_SHOT,
    /* Runs if ranks can read each other's memory. Otherwise ONE_SHOT runs instead, or
     * TWO_SHOT for an allreduce of more than two ranks. */
    HVD_ALGORITHM_CMA_REDUCE,
    /* For allreduce and reducescatter on several nodes. MULTILEVEL replaces LINEAR and
     * DIRECT if grid_levels allows more than one level. */
    HVD_ALGORITHM_PAIR,
    HVD_ALGORITHM_LINEAR,
    HVD_ALGORITHM_DIRECT, /* for three or more nodes */
    HVD_ALGORITHM_MULTILEVEL,
    /* For broadcast, allgather and alltoall on one node. CMA_READ and CMA_WRITE run if
     * ranks can access each other's memory, else ROLLING or CICO. CICO sends small blocks
     * through LL. */
    HVD_ALGORITHM_CICO,
    HVD_ALGORITHM_ROLLING,
    HVD_ALGORITHM_CMA_READ,
    HVD_ALGORITHM_CMA_WRITE,
    /* Broadcast, allgather and alltoall on several nodes have one algorithm each. */
    HVD_ALGORITHM_TREE,
    HVD_ALGORITHM_RING,
    HVD_ALGORITHM_PAIRWISE,
    HVD_ALGORITHMS
};

enum {
    HVD_ALGORITHM_ROWS = 12,
};

/* The algorithm for messages from `from` bytes up to the next row. */
struct hvd_algorithm_row {
    int64_t from;
    enum hvd_algorithm algorithm;
    /* LINEAR, DIRECT: the whole chunk is one slice, which one rank of each node reduces.
     * False: there is a slice for each local rank. */
    bool has_one_slice;
    /* The longest chunk, at most the size of a slot; not used by LL, PAIR and CMA. 0: a
     * slot for CICO, RING and PAIRWISE; a quarter of the data, but at least 64 KiB, for
     * the others. */
    size_t chunk_bytes;
    size_t window_bytes; /* PAIR: the most bytes in flight. 0: 250 KiB */
    int line; /* line number in the table's file; 0: a built-in row */
};

struct hvd_algorithm_rows {
    int count; /* 0: the built-in rows apply */
    /* ascending; the first starts at 0 */
    struct hvd_algorithm_row rows[HVD_ALGORITHM_ROWS];
};

struct hvd_algorithm_choices {
    struct hvd_algorithm_rows of[HVD_COLLECTIVES];
    /* 1 to HVD_GRID_LEVELS; 0: the number that needs the fewest messages */
    int grid_levels;
};

/* Processors with a built-in table of their own. */
enum hvd_processor {
    HVD_PROCESSOR_OTHER, /* measured on Intel Xeon */
    HVD_PROCESSOR_AMD,
};

/* The properties of a job by which tables choose. */
struct hvd_job_shape {
    int nodes;
    int ranks; /* the largest number of ranks on a node */
    /* Used on one node only: there all ranks have the same processor. */
    enum hvd_processor cpu;
};

/* Returns the shape of a layout, with HVD_PROCESSOR_OTHER; see hvd_job_shape_here. */
struct hvd_job_shape hvd_job_shape_of(const struct hvd_layout *layout);

/* Return the processor of this machine, and the shape of a job whose nodes are like this
 * machine. All other functions are pure: they return the same on all machines. */
enum hvd_processor hvd_processor_here(void);
struct hvd_job_shape hvd_job_shape_here(const struct hvd_layout *layout);

/* Fills in the built-in table for a shape. */
void hvd_algorithm_choices_builtin(struct hvd_job_shape shape,
                                   struct hvd_algorithm_choices *choices);

/* Returns the chunk size with which each slice is one message of the network, for two
 * nodes of two ranks: from 256 KiB on this is 3 to 13 % faster than chunks of a quarter
 * of the data. Returns 0 for other shapes; with more ranks such a chunk would be about as
 * large as a slot. */
size_t hvd_algorithm_message_chunk(struct hvd_job_shape shape);

/* Finds the row for a size; choices must have rows for every collective. */
const struct hvd_algorithm_row *
hvd_algorithm_for(const struct hvd_algorithm_choices *choices,
                  enum hvd_collective collective, int64_t bytes);

/* Returns why a row does not fit a shape, or NULL if it does. most: the largest size to
 * which the row applies. */
const char *hvd_algorithm_misfit(const struct hvd_algorithm_row *choice,
                                 enum hvd_collective collective,
                                 struct hvd_job_shape shape, int64_t most);

/* Return the name of a collective, such as "allreduce", and the collective that has a
 * name, or -1. */
const char *hvd_collective_name(enum hvd_collective collective);
int hvd_collective_find(const char *name);

/* Return the name of an algorithm ("two_shot"), a sentence about it, and the algorithm
 * that has a name, or -1. find also accepts names from earlier versions of hvd, some of
 * which stand for several algorithms, so it needs the collective. */
const char *hvd_algorithm_name(enum hvd_algorithm algorithm);
const char *hvd_algorithm_does(enum hvd_algorithm algorithm);
int hvd_algorithm_find(const char *name, enum hvd_collective collective);

/* Whether the rows of a collective may choose the algorithm, in jobs of some shape. */
bool hvd_algorithm_is_for(enum hvd_algorithm algorithm, enum hvd_collective collective);

#endif
