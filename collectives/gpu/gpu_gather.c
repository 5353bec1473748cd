/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of a batch of GPU tensors tell each other before it is launched. */
#include <stdlib.h>

#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_run_gather(struct hvd_gpu_run *run, const void *data, size_t bytes,
                       struct hvd_error *err)
{
    int size = run->team->layout->size;
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_ALLGATHER, .count = 1, .row_count = size};
    struct hvd_entry *const entries[] = {&run->gathered};

    run->rows = calloc((size_t)size, sizeof(run->rows[0]));
    if (run->rows == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", size);
    }
    for (int i = 0; i < size; i++) {
        run->rows[i] = (int64_t)bytes;
    }
    run->gathered = (struct hvd_entry){
        .proposal = {.kind = HVD_KIND_ALLGATHER,
                     .dtype = HVD_UINT8,
                     .device = HVD_DEVICE_CPU,
                     .ndim = 1,
                     .shape = {(int64_t)bytes},
                     .name = run->batch->entries[0]->proposal.name},
        .input = data,
    };
    return hvd_run_create(run->team, &header, entries, run->rows, &run->inner, err);
}

int hvd_gpu_run_inner(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                      struct hvd_error *err)
{
    int status = hvd_run_progress(run->inner, work, moved);

    if (status == HVD_INPROGRESS) {
        return status;
    }
    if (status == 0) {
        hvd_run_destroy(run->inner);
        run->inner = NULL;
        return 0;
    }
    return hvd_fail(err, status, "%s", hvd_status_name(status));
}

void hvd_gpu_run_end_gather(struct hvd_gpu_run *run)
{
    free(run->rows);
    free(run->gathered.result);
    run->rows = NULL;
    run->gathered = (struct hvd_entry){0};
}
