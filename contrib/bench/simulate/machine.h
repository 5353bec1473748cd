/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that is simulated, and the work on it: one text of options,
 * "nodes=4,link=25Gb". */
#ifndef HVD_SIMULATE_MACHINE_H
#define HVD_SIMULATE_MACHINE_H

#include "gpu_binding/base/error.h"

/* Times in seconds, rates in bytes per second. `hvd-bench --simulate --help` describes
 * each. */
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

/* 128 servers of 4 P100 with one 25 Gb card each, the machine of Horovod's published
 * figures. */
struct simulate_options simulate_defaults(void);

/* Takes "name=value,..." over. Returns 0 or HVD_ERR_ARG. */
int simulate_parse(const char *text, struct simulate_options *options,
                   struct hvd_error *err);

/* A Markdown list of all assumptions. */
void simulate_print_assumptions(const struct simulate_options *options);

#endif
