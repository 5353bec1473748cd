/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that is simulated, and what runs on it: one text of options, "nodes=4,link=25Gb". */
#ifndef HVD_SIMULATE_MACHINE_H
#define HVD_SIMULATE_MACHINE_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

/* Times in seconds, rates in bytes per second. */
struct simulate_machine {
    int nodes;
    int gpus; /* ranks per node */
    int cards; /* network cards per node; rank r uses card r % cards */
    double link; /* of a card, each direction, payload */
    double
        latency; /* of a message between nodes, from card to card and through the software */
    double message; /* processor time that a message takes at either end */
    double
        netcopy; /* rate at which a core handles message bytes at either end; 0: for free */
    double pcie; /* staging in, of one rank: PUT, and what is read from the input */
    double out; /* staging out: GET, and what is written to the output; 0: as pcie */
    double sum; /* bytes of input that a core adds up */
    double
        cross; /* bytes that a rank writes for ranks on other cores take so long besides, to get
                   * there and to be won back; 0: no time */
    double memory; /* what all cores of a node can copy together */
    int cores; /* of a node; rank r is on core r % cores */
    double
        patience; /* how long a rank that waits looks before it makes way on its core */
    double switching; /* of a core from one rank to the next */
    double sync; /* until a signal is seen by the other ranks of the node */
    double step; /* what any step costs */
    int calls; /* one allreduce after the other; the mean counts */
    double nvlink; /* between GPUs of a node: of a flat ring */
};

enum simulate_schedule {
    SIMULATE_HVD,
    SIMULATE_HOROVOD,
};

struct simulate_options {
    struct simulate_machine machine;
    char model[32]; /* resnet101 ... */
    char device[8]; /* p100, v100: whose published speed gives the compute time */
    enum simulate_schedule schedule;
    double batch; /* samples per GPU and step */
    double compute; /* seconds of a step on one GPU; 0: published */
    double jitter; /* standard deviation of a rank's compute time, as a share of it */
    double fusion; /* bytes */
    double cycle; /* seconds */
    double coordinator; /* Horovod: seconds per rank and cycle at rank 0 */
    double hop; /* Horovod: seconds of one ring hop between nodes; within: a third */
    double bytes; /* one allreduce instead of a model */
    double whole; /* not 0: simulate all ranks even if one node could stand for all */
};

/* P100 servers with one 25 Gb card, the published case; schedule as said. */
struct simulate_options simulate_defaults(enum simulate_schedule schedule);

/* Takes "name=value,..." over. Returns 0 or HVD_ERR_ARG. */
int simulate_parse(const char *text, struct simulate_options *options,
                   struct hvd_error *err);

/* A Markdown list of all assumptions. */
void simulate_print_assumptions(const struct simulate_options *options);

#endif
