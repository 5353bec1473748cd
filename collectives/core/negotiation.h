/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement (agreement.h) as a source (loop.h): passes submissions in, and carries
 * out its events.
 *
 * If the agreement cannot go on, this source ends the job (failure.h).
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
    bool is_open; /* the job has neither failed nor begun to shut down */
    struct hvd_entry *proposing; /* submissions that the agreement has not taken yet */
    int other_sets; /* the number of process sets besides the global one */
    struct hvd_error failure; /* why the agreement cannot go on, if that is known */
    int culprit; /* the rank to blame for the failure */
};

/* Whether the job has process sets besides the global one. */
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

/* Returns a rank that explains why a peer has left, see hvd_agreement_suspect; -1:
 * none. */
int hvd_negotiation_suspect(const struct hvd_job *job, char *text, size_t bytes);

/* Handle a message from a branch (sets.h), or from the parent. */
void hvd_negotiation_on_reports(struct hvd_job *job, int branch, const void *payload,
                                size_t bytes);
void hvd_negotiation_on_decisions(struct hvd_job *job, const void *payload, size_t bytes);

/* Ends the entries of a batch that has run, and takes the batch over. job: a struct
 * hvd_job. */
void hvd_negotiation_finish(void *job, struct hvd_batch *batch);

#endif
