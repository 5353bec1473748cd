/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement (agreement.h) as a source (loop.h): submissions go in, batches and ends
 * come out.
 *
 * When it cannot go on, it ends the job (failure.h).
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NEGOTIATION_H
#define HVD_NEGOTIATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_agreement;
struct hvd_batch;
struct hvd_job;
struct hvd_entry;

struct hvd_negotiation {
    struct hvd_agreement *agreement;
    bool is_open; /* neither has the job failed, nor do all leave */
    struct hvd_entry *proposing; /* submissions that the agreement has not seen yet */
    int other_sets; /* process sets of the job beside the global one */
    struct hvd_error failure; /* why it cannot go on, where that is known */
    int culprit; /* the rank to blame for that */
};

/* The job has process sets beside the global one. */
static inline bool
hvd_negotiation_has_other_sets(const struct hvd_negotiation *negotiation)
{
    return negotiation->other_sets > 0;
}

static inline struct hvd_agreement *
hvd_negotiation_agreement(const struct hvd_negotiation *negotiation)
{
    return negotiation->agreement;
}

int hvd_negotiation_open(struct hvd_job *job, struct hvd_error *err);

/* Who else explains that a peer has left; see hvd_agreement_suspect. */
int hvd_negotiation_suspect(const struct hvd_job *job, char *text, size_t bytes);

/* A message of a branch (sets.h) or of the parent. */
void hvd_negotiation_on_reports(struct hvd_job *job, int branch, const void *payload,
                                size_t bytes);
void hvd_negotiation_on_decisions(struct hvd_job *job, const void *payload, size_t bytes);

/* A batch (taken over) has run: its entries end. job: a struct hvd_job. */
void hvd_negotiation_finish(void *job, struct hvd_batch *batch);

#endif
