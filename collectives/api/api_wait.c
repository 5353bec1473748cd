/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: waiting for requests, and taking their results. */
#include <string.h>

#include "collectives/api/api.h"
#include "collectives/core/progress.h"
#include "collectives/request/request.h"
#include "gpu_binding/base/attr.h"
#include "pmix_boot/cause.h"

static bool has_ended(const void *arg)
{
    const struct hvd_request *request = arg;

    /* sequentially consistent, so that no wake-up is lost (waiters.h) */
    return atomic_load(&request->status) != HVD_INPROGRESS;
}

static int request_status(const struct hvd_request *request, struct hvd_error *err)
{
    int status = atomic_load_explicit(&request->status, memory_order_acquire);

    if (status < 0 && err != NULL) {
        *err = request->error;
    }
    return status;
}

HVD_EXPORT int hvd_test(struct hvd_request *request, struct hvd_error *err)
{
    struct hvd_job *job;

    if (!has_ended(request)) {
        atomic_store(&request->is_asked_for, true);
        job = hvd_job_enter(err);
        if (job != NULL) {
            hvd_progress_try_poll(job);
            hvd_job_exit();
        } else if (!has_ended(request)) {
            return HVD_ERR_STATE;
        }
    }
    return request_status(request, err);
}

HVD_EXPORT int hvd_wait_for(struct hvd_request *request, int timeout_ms,
                            struct hvd_error *err)
{
    char operation[HVD_OPERATION_BYTES];
    struct hvd_job *job;
    int status;

    if (!has_ended(request)) {
        job = hvd_job_enter(err);
        if (job != NULL) {
            atomic_store(&request->is_asked_for, true);
            hvd_progress_wait(job, has_ended, request, timeout_ms);
            hvd_job_exit();
        } else if (!has_ended(request)) {
            return HVD_ERR_STATE; /* a forked child: the request belongs to its parent */
        }
    }
    status = request_status(request, err);
    if (status == HVD_ERR_SHUTDOWN && (err != NULL || !request->is_optional)) {
        hvd_cause_miss(hvd_entry_operation(request->entries, operation));
    }
    return status;
}

HVD_EXPORT int hvd_wait(struct hvd_request *request, struct hvd_error *err)
{
    return hvd_wait_for(request, -1, err);
}

static struct hvd_entry *ended_entry(struct hvd_request *request, int index)
{
    bool usable =
        index >= 0 && index < request->count && request_status(request, NULL) == 0;

    return usable ? &request->entries[index] : NULL;
}

HVD_EXPORT int hvd_request_take(struct hvd_request *request, int index, void **data,
                                int64_t *rows)
{
    struct hvd_entry *entry = ended_entry(request, index);

    if (entry == NULL || entry->device != HVD_DEVICE_CPU || entry->output_bytes > 0 ||
        (!hvd_kind_has_rows(entry->descriptor.kind) &&
         entry->descriptor.kind != HVD_KIND_ALLTOALL)) {
        return HVD_ERR_STATE;
    }
    *data = entry->result;
    *rows = entry->result_rows;
    entry->result = NULL;
    return 0;
}

HVD_EXPORT int hvd_request_splits(struct hvd_request *request, int32_t *splits)
{
    struct hvd_entry *entry = hvd_request_launched_entry(request, 0);

    if (entry == NULL || entry->received == NULL) {
        return HVD_ERR_STATE;
    }
    memcpy(splits, entry->received, (size_t)entry->split_count * sizeof(splits[0]));
    return 0;
}

/* Returns the value of an ended request of one of these kinds, or of a receive that is on
 * the GPU's streams; otherwise HVD_ERR_STATE. */
static int ended_value(struct hvd_request *request, enum hvd_kind kind,
                       enum hvd_kind other)
{
    struct hvd_entry *entry = hvd_request_launched_entry(request, 0);

    return entry == NULL ||
                   (entry->descriptor.kind != kind && entry->descriptor.kind != other)
               ? HVD_ERR_STATE
               : (int)request->value;
}

HVD_EXPORT int hvd_request_last_rank(struct hvd_request *request)
{
    return ended_value(request, HVD_KIND_JOIN, HVD_KIND_JOIN);
}

HVD_EXPORT int hvd_request_set(struct hvd_request *request)
{
    return ended_value(request, HVD_KIND_SET_ADD, HVD_KIND_SET_CREATE);
}

HVD_EXPORT int hvd_request_source(struct hvd_request *request)
{
    return ended_value(request, HVD_KIND_RECEIVE, HVD_KIND_RECEIVE);
}

/* Makes the job forget a persistent request, unless the request belongs to an earlier
 * job. */
static void forget_request(struct hvd_request *request)
{
    struct hvd_job *job = hvd_job_enter(NULL);

    if (job == NULL) {
        return;
    }
    if (request->job == hvd_job_number()) {
        hvd_job_forget(job, request);
    }
    hvd_job_exit();
}

HVD_EXPORT void hvd_request_free(struct hvd_request *request)
{
    if (request == NULL) {
        return;
    }
    /* A request that has succeeded needs no wait. A failed one is waited for, because
     * hvd_wait records the failure (hvd_cause_miss). */
    if (atomic_load(&request->status) != 0 && !atomic_load(&request->is_on_stream)) {
        hvd_wait(request, NULL);
    }
    if (request->is_persistent) {
        forget_request(request);
    }
    hvd_request_drop(request);
}
