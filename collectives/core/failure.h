/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job that cannot go on.
 *
 * A rank that ends because another one died closes its connections, including those of
 * UCX and NCCL. Its peers may notice that before they hear which rank died, so they wait
 * a while before they blame the peer that was lost.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_FAILURE_H
#define HVD_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_job;

struct hvd_failure {
    bool has_failed;
    struct hvd_error error; /* the error that all requests get after the failure */
    bool leaks; /* another rank may still write to memory that was offered to it */
};

static inline bool hvd_failure_has_come(const struct hvd_failure *failure)
{
    return failure->has_failed;
}

/* Returns the failure that all requests get; status 0: none. */
static inline const struct hvd_error *hvd_failure_error(const struct hvd_failure *failure)
{
    return &failure->error;
}

/* Whether another rank may still write to memory that was offered to it: that memory must
 * never be freed. */
static inline bool hvd_failure_leaks(const struct hvd_failure *failure)
{
    return failure->leaks;
}

/* Ends everything on this rank and tells the others, because this rank cannot go on.
 * culprit: the rank to blame. Only the first call counts. */
void hvd_failure_end_job(struct hvd_job *job, int culprit, int status, const char *text);

/* Notes the loss of a peer: sets *lost_ns to now if it is 0. Returns true once the peer
 * itself may be blamed (after hvd_failure_certain_at), because a report that another rank
 * has died would have arrived by then. */
bool hvd_failure_is_certain(int64_t *lost_ns, int64_t now_ns);
int64_t hvd_failure_certain_at(int64_t lost_ns);

#endif
