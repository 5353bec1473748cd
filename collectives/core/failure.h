/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job that cannot go on.
 *
 * A rank that ends because another one died closes its connections, and those of the
 * network (UCX, NCCL) may be seen before the word of who died: it is waited for a while
 * before the peer that was lost is blamed.
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
    struct hvd_error error; /* what all get since then */
    bool leaks; /* another rank may still write to what was offered */
};

static inline bool hvd_failure_has_come(const struct hvd_failure *failure)
{
    return failure->has_failed;
}

/* The failure that all requests get; status 0: there is none. */
static inline const struct hvd_error *hvd_failure_error(const struct hvd_failure *failure)
{
    return &failure->error;
}

/* Another rank may still write to memory that was offered to it: it must never be
 * freed. */
static inline bool hvd_failure_leaks(const struct hvd_failure *failure)
{
    return failure->leaks;
}

/* This rank cannot go on: ends everything here and tells the others. culprit: the rank
 * that is to blame. Only the first call counts. */
void hvd_failure_end_job(struct hvd_job *job, int culprit, int status, const char *text);

/* A peer is lost: *lost_ns is now, if it was not before. True once the word of who died
 * would be here, which is at hvd_failure_certain_at. */
bool hvd_failure_is_certain(int64_t *lost_ns, int64_t now_ns);
int64_t hvd_failure_certain_at(int64_t lost_ns);

#endif
