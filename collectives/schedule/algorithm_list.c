/* SPDX-License-Identifier: Apache-2.0 */
/* The list of algorithms: one row for each file of this folder that is an algorithm. */
#include <string.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/schedule.h"

enum {
    ANY = 1 << 20, /* no limit on nodes, or on ranks of a node */
    SUMS = 1 << HVD_COLL_ALLREDUCE | 1 << HVD_COLL_REDUCESCATTER,
    GATHER = 1 << HVD_COLL_ALLGATHER,
    BROADCAST = 1 << HVD_COLL_BROADCAST,
    ALLTOALL = 1 << HVD_COLL_ALLTOALL,
};

static const struct {
    const char *name;
    /* the name in tables of earlier versions; several algorithms may share one */
    const char *was;
    const char *does;
    unsigned collectives; /* bits of the collectives that may use it */
    int least_nodes, most_nodes, most_ranks;
    const char *misfit; /* the error if the collective or the shape does not fit */
} list[HVD_ALGORITHMS] = {
    [HVD_ALGORITHM_LL] = {"ll", "line",
                          "one-shot in a cache line (LL): up to 24 bytes travel with "
                          "the flag that announces them",
                          SUMS, 1, 1, ANY,
                          "it is for allreduce and reducescatter on one node"},
    [HVD_ALGORITHM_ONE_SHOT] = {"one_shot", "full",
                                "one-shot: each rank adds up all inputs in shared memory",
                                SUMS, 1, 1, ANY,
                                "it is for allreduce and reducescatter on one node"},
    [HVD_ALGORITHM_TWO_SHOT] = {"two_shot", "lanes",
                                "two-shot: reduce-scatter and allgather in shared memory",
                                SUMS, 1, 1, ANY,
                                "it is for allreduce and reducescatter on one node"},
    [HVD_ALGORITHM_CMA_REDUCE] =
        {"cma_reduce", "single",
         "two-shot by cross-memory attach: each rank reduces its share of all inputs in "
         "place, and the others read the result from its memory",
         SUMS, 1, 1, ANY, "it is for allreduce and reducescatter on one node"},
    [HVD_ALGORITHM_PAIR] = {"pair", "pair",
                            "pairwise exchange: two ranks send each other their "
                            "inputs, and each adds the other's as it arrives",
                            SUMS, 2, 2, 1,
                            "it is for allreduce and reducescatter on 2 nodes of 1 rank"},
    [HVD_ALGORITHM_LINEAR] =
        {"linear", "exchange",
         "linear between nodes: each node sends its sum to all others and adds up the "
         "sums that it receives",
         SUMS, 2, ANY, ANY, "it is for allreduce and reducescatter on 2 or more nodes"},
    [HVD_ALGORITHM_DIRECT] =
        {"direct", "direct",
         "reduce-scatter and allgather between nodes, in which each node sends directly "
         "to all others",
         SUMS, 3, ANY, ANY, "it is for allreduce and reducescatter on 3 or more nodes"},
    [HVD_ALGORITHM_MULTILEVEL] =
        {"multilevel", "grid",
         "multi-level (torus): linear or direct along each dimension of a grid of nodes, "
         "one dimension after the other",
         0, 0, 0, 0, "write \"multilevel levels=NUMBER\" on a line of its own"},
    [HVD_ALGORITHM_CICO] = {"cico", "slots",
                            "copy in, copy out (CICO) through slots in shared memory",
                            GATHER | ALLTOALL, 1, 1, ANY,
                            "it is for allgather and alltoall on one node"},
    [HVD_ALGORITHM_ROLLING] = {"rolling", "slots",
                               "pipelined copy in, copy out (CICO): the root fills slots "
                               "in shared memory ahead of the readers",
                               BROADCAST, 1, 1, ANY, "it is for broadcast on one node"},
    [HVD_ALGORITHM_CMA_READ] =
        {"cma_read", "single",
         "single copy by cross-memory attach: the receiver reads from the sender's "
         "memory",
         GATHER | BROADCAST | ALLTOALL, 1, 1, ANY,
         "it is for broadcast, allgather and alltoall on one node"},
    [HVD_ALGORITHM_CMA_WRITE] =
        {"cma_write", "stores",
         "single copy by cross-memory attach: the sender writes into the receiver's "
         "memory",
         GATHER | BROADCAST | ALLTOALL, 1, 1, ANY,
         "it is for broadcast, allgather and alltoall on one node"},
    [HVD_ALGORITHM_TREE] = {"tree", "tree", "binomial tree of nodes, pipelined in chunks",
                            BROADCAST, 2, ANY, ANY,
                            "it is for broadcast on 2 or more nodes"},
    [HVD_ALGORITHM_RING] = {"ring", "ring",
                            "ring of nodes: in round d each node sends its blocks to "
                            "the node d places ahead",
                            GATHER, 2, ANY, ANY,
                            "it is for allgather on 2 or more nodes"},
    [HVD_ALGORITHM_PAIRWISE] = {"pairwise", "shifts",
                                "pairwise: in round d each rank sends to the rank d "
                                "places ahead and receives from the one d behind",
                                ALLTOALL, 2, ANY, ANY,
                                "it is for alltoall on 2 or more nodes"},
};

static bool is_within(int number, int least, int most)
{
    return number >= least && number <= most;
}

const char *hvd_algorithm_misfit(const struct hvd_algorithm_row *choice,
                                 enum hvd_collective collective,
                                 struct hvd_job_shape shape, int64_t most)
{
    enum hvd_algorithm algorithm = choice->algorithm;

    if ((list[algorithm].collectives & 1u << collective) == 0 ||
        !is_within(shape.nodes, list[algorithm].least_nodes,
                   list[algorithm].most_nodes) ||
        shape.ranks > list[algorithm].most_ranks) {
        return list[algorithm].misfit;
    }
    return algorithm == HVD_ALGORITHM_LL && most > HVD_LINE_BYTES
               ? "a cache line holds only 24 bytes: add a row that begins at 25"
               : NULL;
}

const char *hvd_algorithm_name(enum hvd_algorithm algorithm)
{
    return list[algorithm].name;
}

const char *hvd_algorithm_does(enum hvd_algorithm algorithm)
{
    return list[algorithm].does;
}

bool hvd_algorithm_is_for(enum hvd_algorithm algorithm, enum hvd_collective collective)
{
    return (list[algorithm].collectives & 1u << collective) != 0;
}

int hvd_algorithm_find(const char *name, enum hvd_collective collective)
{
    for (int i = 0; i < HVD_ALGORITHMS; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return i;
        }
    }
    for (int i = 0; i < HVD_ALGORITHMS; i++) {
        if (hvd_algorithm_is_for((enum hvd_algorithm)i, collective) &&
            strcmp(list[i].was, name) == 0) {
            return i;
        }
    }
    return -1;
}
