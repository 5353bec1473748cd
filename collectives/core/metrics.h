/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for Prometheus (HVD_METRICS): counts on every rank, and the file that the first
 * rank of each node writes. A job without metrics pays for a test of a pointer.
 *
 * Threads: the progress lock is held, unless a function says otherwise. */
#ifndef HVD_METRICS_H
#define HVD_METRICS_H

#include <stdint.h>

#include "collectives/request/batch.h"

struct hvd_job;
struct hvd_metrics_counts;
struct hvd_metrics_run;
struct hvd_metrics_writer;
struct hvd_straggler_batch;
struct hvd_trace_span;

struct hvd_metrics {
    struct hvd_metrics_counts *own; /* NULL: no metrics */
    char *map; /* the counts of all local ranks, by local rank */
    int64_t ended_ns[HVD_PRIORITIES]; /* end of the last batch in each queue */
    struct hvd_metrics_writer *writer; /* NULL: another rank writes the file */
    /* the batch whose tensors land on the GPU, and when its first work was submitted */
    struct hvd_metrics_run *landing;
    int64_t landing_ns; /* 0: none */
    int64_t published; /* compared batches that the writer knows of */
};

/* Returns how many bytes behind those of mail the metrics reserve in the memory of a
 * node. They use no memory until a rank opens its metrics. */
size_t hvd_metrics_bytes(int local_size);

/* Begins to count, and to write the file, if the environment asks for it. A failure costs
 * the metrics, not the training: it is logged, and not returned. */
int hvd_metrics_open(struct hvd_job *job, struct hvd_error *err);

/* Counts a batch that has ended; `note` describes it. */
void hvd_metrics_note(struct hvd_job *job, const struct hvd_batch *batch,
                      const struct hvd_straggler_batch *note);

/* Whether the device is to measure batches. */
static inline bool hvd_metrics_are_on(const struct hvd_metrics *metrics)
{
    return metrics->own != NULL;
}

/* Counts the device's time for a tensor, whose batch has done its first work at since_ns.
 * The tensors of a batch come one after the other. */
void hvd_metrics_note_landed(struct hvd_job *job, const struct hvd_entry *entry,
                             int64_t since_ns, const struct hvd_trace_span *spans,
                             int count);

/* Counts the warnings about stalls. */
void hvd_metrics_note_stalls(struct hvd_job *job);

/* Rank 0: passes the sums about late ranks on, if they have changed. */
void hvd_metrics_publish(struct hvd_job *job);

/* Completes the counts. To be called when all batches have ended on this rank, and before
 * the rank reports that to its parent: afterwards the file may be written for the last
 * time. */
void hvd_metrics_settle(struct hvd_job *job);

/* Counts a step of the optimizer. Any thread, but one at a time. */
void hvd_metrics_count_step(const struct hvd_metrics *metrics);

#endif
