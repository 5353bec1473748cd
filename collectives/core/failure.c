/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job that cannot go on. */
#include "collectives/core/failure.h"

#include "collectives/core/grace.h"
#include "collectives/core/job_state.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/shm/shm_reach.h"
#include "pmix_boot/boot.h"
#include "pmix_boot/cause.h"

/* How long the report of which rank died may take to arrive: milliseconds, unless ranks
 * share cores with many others. */
static const int64_t word_ns = 2000000000;

void hvd_failure_end_job(struct hvd_job *job, int culprit, int status, const char *text)
{
    struct hvd_failure *failure = &job->failure;

    if (failure->has_failed) {
        return;
    }
    failure->has_failed = true;
    hvd_grace_begin();
    hvd_cause_tell(culprit, job->boot->rank, text);
    /* text may be in memory that hvd_loop_fail frees */
    hvd_fail(&failure->error, status, "%s", text);
    hvd_submissions_refuse(&job->submissions, status, failure->error.text);
    hvd_control_abort(job->control, culprit, failure->error.text);
    /* Revoke access to this rank's tensors, which go back to their owners. */
    failure->leaks = job->shm != NULL && !hvd_shm_hide(job->shm);
    hvd_loop_fail(&job->loop, status, failure->error.text);
}

bool hvd_failure_is_certain(int64_t *lost_ns, int64_t now_ns)
{
    if (*lost_ns == 0) {
        *lost_ns = now_ns;
    }
    return now_ns > hvd_failure_certain_at(*lost_ns);
}

int64_t hvd_failure_certain_at(int64_t lost_ns)
{
    return lost_ns + word_ns;
}
