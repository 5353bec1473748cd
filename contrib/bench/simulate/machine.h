/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that is simulated and the work on it, from a text of options such as
 * "nodes=4,link=25Gb". */
#ifndef HVD_SIMULATE_MACHINE_H
#define HVD_SIMULATE_MACHINE_H

#include "gpu_binding/base/error.h"

/* Times are in seconds, rates in bytes per second. `hvd-bench --simulate --help`
 * describes each member. */
struct simulate_machine {
    int nodes;
    int gpus;
    int cards;
    double link;
    double latency;
    double message;
    double pcie;
    double sum;
    double memory;
    double sync;
    double step;
};

struct simulate_options {
    struct simulate_machine machine;
    char model[32];
    double batch;
    double compute;
    double jitter;
    double fusion;
    double bytes;
};

/* Returns the machine of Horovod's published figures: 128 servers with 4 P100 and one
 * card of 25 Gb each. */
struct simulate_options simulate_defaults(void);

/* Applies "name=value,...". Returns 0 or HVD_ERR_ARG. */
int simulate_parse(const char *text, struct simulate_options *options,
                   struct hvd_error *err);

/* Prints all assumptions as a Markdown list. */
void simulate_print_assumptions(const struct simulate_options *options);

#endif
