/* SPDX-License-Identifier: Apache-2.0 */
/* What the teams call for batches on GPUs. */
#include "collectives/gpu/gpu_run.h"

static uint64_t number(void *context)
{
    return hvd_gpu_number(context);
}

static int create(void *context, struct hvd_team *team, struct hvd_batch *batch,
                  void **out, struct hvd_error *err)
{
    struct hvd_gpu_run *run = NULL;
    int status = hvd_gpu_run_create(context, team, batch, &run, err);

    *out = run;
    return status;
}

static int progress(void *run, int64_t *work, bool *moved, struct hvd_error *err)
{
    return hvd_gpu_run_progress(run, work, moved, err);
}

static void forget(void *run, bool leaks)
{
    hvd_gpu_run_forget(run, leaks);
}

static void destroy(void *run)
{
    hvd_gpu_run_destroy(run);
}

static void forget_set(void *context, int set)
{
    hvd_gpu_forget_peers(context, set);
}

const struct hvd_executor hvd_gpu_executor = {
    .number = number,
    .create = create,
    .progress = progress,
    .forget = forget,
    .destroy = destroy,
    .forget_set = forget_set,
};
