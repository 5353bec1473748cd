/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a GPU batch: made, given up, ended. */
#include <stdlib.h>

#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_run_create(struct hvd_gpu *gpu, struct hvd_team *team,
                       struct hvd_batch *batch, struct hvd_gpu_run **out,
                       struct hvd_error *err)
{
    struct hvd_gpu_run *run = calloc(1, sizeof(*run));

    if (run == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                        batch->entries[0]->proposal.name);
    }
    run->gpu = gpu;
    run->team = team;
    run->batch = batch;
    run->count = batch->header.count;
    *out = run;
    return 0;
}

void hvd_gpu_run_forget(struct hvd_gpu_run *run, bool leaks)
{
    if (leaks) {
        run->gathered.result = NULL;
        hvd_gpu_stage_leak(run);
    }
    if (run->inner != NULL) {
        hvd_run_forget(run->inner);
    }
}

void hvd_gpu_run_destroy(struct hvd_gpu_run *run)
{
    if (run == NULL) {
        return;
    }
    hvd_gpu_run_poll(run, false);
    hvd_gpu_run_pass_turn(run);
    if (run->gpu->is_stuck || hvd_gpu_job_is_held(&run->job) ||
        hvd_gpu_pipe_is_held(run->pipe)) {
        return; /* the device, or the launcher, has it for ever: see hvd_gpu_stop */
    }
    hvd_run_destroy(run->inner);
    hvd_gpu_run_end_gather(run);
    hvd_gpu_stage_finish(run);
    hvd_gpu_packing_finish(run);
    hvd_gpu_job_end(run->gpu, &run->job);
    hvd_gpu_pipe_destroy(run->pipe);
    hvd_gpu_trace_destroy(run->trace);
    free(run->counts);
    free(run->shown);
    free(run);
}
