/* SPDX-License-Identifier: Apache-2.0 */
/* A small allgather among the hosts of a team. */
#include "collectives/gpu/gpu_host_gather.h"

#include <stdlib.h>

#include "collectives/run/run.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_host_gather_begin(struct hvd_gpu_host_gather *gather, struct hvd_team *team,
                              const char *name, const void *data, size_t bytes,
                              struct hvd_error *err)
{
    int size = team->layout->size;
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_ALLGATHER, .count = 1, .row_count = size};
    struct hvd_entry *const entries[] = {&gather->entry};

    gather->rows = calloc((size_t)size, sizeof(gather->rows[0]));
    if (gather->rows == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", size);
    }
    for (int i = 0; i < size; i++) {
        gather->rows[i] = (int64_t)bytes;
    }
    gather->entry = (struct hvd_entry){
        .descriptor = {.kind = HVD_KIND_ALLGATHER,
                       .dtype = HVD_UINT8,
                       .device = HVD_DEVICE_CPU,
                       .ndim = 1,
                       .shape = {(int64_t)bytes},
                       .name = name},
        .input = data,
    };
    return hvd_run_create(team, &header, entries, gather->rows, &gather->run, err);
}

int hvd_gpu_host_gather_progress(struct hvd_gpu_host_gather *gather, int64_t *work,
                                 bool *moved, struct hvd_error *err)
{
    int status = hvd_run_progress(gather->run, work, moved);

    if (status == 0) {
        hvd_run_destroy(gather->run);
        gather->run = NULL;
    }
    return status >= 0 ? status : hvd_fail(err, status, "%s", hvd_status_name(status));
}

const void *hvd_gpu_host_gather_result(const struct hvd_gpu_host_gather *gather)
{
    return gather->entry.result;
}

void hvd_gpu_host_gather_forget(struct hvd_gpu_host_gather *gather, bool leaks)
{
    if (leaks) {
        gather->entry.result = NULL;
    }
    if (gather->run != NULL) {
        hvd_run_forget(gather->run);
    }
}

void hvd_gpu_host_gather_end(struct hvd_gpu_host_gather *gather)
{
    hvd_run_destroy(gather->run);
    free(gather->rows);
    free(gather->entry.result);
    *gather = (struct hvd_gpu_host_gather){0};
}
