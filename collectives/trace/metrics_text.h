/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the counts of a node in Prometheus' text format, for the textfile collector of
 * node_exporter. Pure, except for the stream that it writes to. */
#ifndef HVD_METRICS_TEXT_H
#define HVD_METRICS_TEXT_H

#include <stdio.h>

#include "collectives/trace/metrics_counts.h"

/* All is borrowed for the call. Texts may contain any characters. */
struct hvd_metrics_node {
    const char *job;
    const char *step;
    const char *user;
    const char *host;
    const struct hvd_metrics_counts *counts; /* [local_size] */
    const int *ranks; /* [local_size] numbers in the job */
    int local_size;
    int size; /* ranks of the job */
    int generation; /* of an elastic job: 1, 2, ...; 0: the job is not elastic */
    bool is_running;
    int64_t written_s; /* now, in seconds since 1970 */
    /* On rank 0: [size]; elsewhere NULL. */
    const struct hvd_metrics_lateness *lateness;
    const char *const *nodes;
    uint64_t compared; /* batches */
};

void hvd_metrics_print(const struct hvd_metrics_node *node, FILE *out);

#endif
