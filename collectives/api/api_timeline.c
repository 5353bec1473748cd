/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: the timeline. */
#include "collectives/api/api.h"
#include "collectives/core/recording.h"
#include "gpu_binding/base/attr.h"

HVD_EXPORT int hvd_timeline_start(const char *path, int mark_cycles,
                                  struct hvd_error *err)
{
    struct hvd_job *job = hvd_job_enter(err);
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_recording_start(job, path, mark_cycles != 0, err);
    hvd_job_exit();
    return status;
}

HVD_EXPORT int hvd_timeline_stop(struct hvd_error *err)
{
    struct hvd_job *job = hvd_job_enter(err);

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_recording_stop(job);
    hvd_job_exit();
    return 0;
}
