/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: tensors on GPUs. */
#include "collectives/api/api_start.h"
#include "collectives/core/progress.h"
#include "collectives/gpu/gpu_runtime.h"
#include "gpu_binding/base/attr.h"

int hvd_start_gpu(struct hvd_job *job, const struct hvd_tensor *tensors,
                  struct hvd_request *request, struct hvd_error *err)
{
    struct hvd_refcount *ready = NULL;
    struct hvd_error cause = {0};
    int status =
        hvd_job_use_gpu(job, tensors[0].device, tensors[0].stream, &ready, &cause);

    if (status != 0) {
        return hvd_fail(err, status, "tensor %.80s is on GPU %d: %s", tensors[0].name,
                        tensors[0].device, cause.text);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].ready = hvd_refcount_keep(ready);
    }
    hvd_refcount_drop(ready);
    return 0;
}

/* --- the end of a request --- */

static bool is_on_gpu(const struct hvd_request *request)
{
    return request->entries[0].ready != NULL;
}

/* Whether the request has been launched, or has ended. */
static bool has_launched(const void *arg)
{
    const struct hvd_request *request = arg;

    return atomic_load(&request->is_launched) ||
           atomic_load(&request->status) != HVD_INPROGRESS;
}

static int wait_launched(struct hvd_request *request, int timeout_ms,
                         struct hvd_error *err)
{
    struct hvd_job *job;

    if (has_launched(request)) {
        return 0;
    }
    job = hvd_job_enter(err);
    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    atomic_store(&request->is_asked_for, true);
    hvd_progress_wait(job, has_launched, request, timeout_ms);
    hvd_job_exit();
    return has_launched(request) ? 0 : HVD_INPROGRESS;
}

static int follow_request(const struct hvd_request *request, void *stream,
                          struct hvd_error *err)
{
    const struct hvd_refcount *last = NULL;
    int status = 0;

    for (int i = 0; status == 0 && i < request->count; i++) {
        const struct hvd_refcount *done = request->entries[i].done;

        if (done != NULL && done != last) {
            status = hvd_gpu_mark_wait(done, stream, err);
            last = done;
        }
    }
    return status;
}

HVD_EXPORT int hvd_wait_on(struct hvd_request *request, void *stream, int timeout_ms,
                           struct hvd_error *err)
{
    int status;

    if (!is_on_gpu(request)) {
        return hvd_wait_for(request, timeout_ms, err);
    }
    status = wait_launched(request, timeout_ms, err);
    if (status != 0) {
        return status;
    }
    /* If the request or one of its tensors has failed, return the failure. */
    if (!atomic_load(&request->is_launched) || atomic_load(&request->status) < 0) {
        return hvd_wait_for(request, timeout_ms, err);
    }
    status = follow_request(request, stream, err);
    if (status == 0) {
        atomic_store(&request->is_on_stream, true);
    }
    return status;
}

HVD_EXPORT int hvd_gpu_synchronize(int timeout_ms, struct hvd_error *err)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int status = 0;

    if (job != NULL) {
        status = hvd_job_gpu_synchronize(job, timeout_ms, err);
        hvd_job_exit();
    }
    return status;
}

/* Does not wait for the lock of api.c. Python calls this function while it holds the GIL,
 * and a thread that holds the lock may wait for the GIL, to call a Python function of
 * struct hvd_store. */
HVD_EXPORT int hvd_gpu_memory_is_short(void)
{
    struct hvd_job *job = hvd_job_try_enter();
    bool is_short = false;

    if (job != NULL) {
        is_short = hvd_job_gpu_is_short(job);
        hvd_job_exit();
    }
    return is_short ? 1 : 0;
}

HVD_EXPORT void hvd_gpu_memory_freed(void)
{
    struct hvd_job *job = hvd_job_enter(NULL);

    if (job != NULL) {
        hvd_job_gpu_freed(job);
        hvd_job_exit();
    }
}

static struct hvd_entry *gathered_entry(struct hvd_request *request, int index)
{
    struct hvd_entry *entry = hvd_request_launched_entry(request, index);

    return entry != NULL && (hvd_kind_has_rows(entry->descriptor.kind) ||
                             entry->descriptor.kind == HVD_KIND_ALLTOALL)
               ? entry
               : NULL;
}

HVD_EXPORT int hvd_request_rows(struct hvd_request *request, int index, int64_t *rows)
{
    const struct hvd_entry *entry = gathered_entry(request, index);

    if (entry == NULL) {
        return HVD_ERR_STATE;
    }
    *rows = entry->result_rows;
    return 0;
}

HVD_EXPORT int hvd_request_copy(struct hvd_request *request, int index, void *output,
                                void *stream, struct hvd_error *err)
{
    struct hvd_entry *entry = gathered_entry(request, index);
    struct hvd_gpu_buffer *buffer;
    int status;

    if (entry == NULL || entry->done == NULL || entry->output_bytes > 0) {
        return hvd_fail(
            err, HVD_ERR_STATE,
            "output %d of this request cannot be copied: it is not on a GPU, is "
            "in the caller's memory already, or is not ready yet",
            index);
    }
    buffer = (struct hvd_gpu_buffer *)entry->buffer;
    if (buffer == NULL) {
        return 0; /* the result is empty */
    }
    status = hvd_gpu_mark_wait(entry->done, stream, err);
    if (status != 0) {
        return status;
    }
    status = buffer->pool->module->copy(
        buffer->pool->device, output, entry->result,
        (size_t)(entry->result_rows * hvd_entry_row_bytes(entry)), stream, err);
    return status != 0 ? status : hvd_gpu_buffer_used(buffer, stream, err);
}
