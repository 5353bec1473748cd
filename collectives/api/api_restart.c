/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: starting a request again after its end. The request keeps what
 * the first start has checked, allocated and looked up. */
#include "collectives/api/api_start.h"
#include "collectives/core/job.h"
#include "gpu_binding/base/attr.h"

/* Whether results of this kind lie in the caller's memory. */
static bool can_be_persistent(enum hvd_kind kind)
{
    switch (kind) {
    case HVD_KIND_ALLREDUCE:
    case HVD_KIND_ADASUM:
    case HVD_KIND_BROADCAST:
    case HVD_KIND_REDUCESCATTER:
    case HVD_KIND_REDUCE:
    case HVD_KIND_SCATTER:
        return true;
    default:
        return false;
    }
}

static int check_request(const struct hvd_request *request, struct hvd_error *err)
{
    const struct hvd_entry *entry = &request->entries[0];
    char operation[HVD_OPERATION_BYTES];

    hvd_entry_operation(entry, operation);
    if (!can_be_persistent(entry->descriptor.kind)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "%s cannot be started again: free the request and start another",
                        operation);
    }
    if (entry->device != HVD_DEVICE_CPU) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "%s is on a GPU and cannot be started again: free the request and "
            "start another",
            operation);
    }
    if (atomic_load(&request->status) == HVD_INPROGRESS) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s is still in flight: wait for it before you start it again",
                        operation);
    }
    return 0;
}

/* Checks the process set, which may have been removed since the first start. */
static int check_set(struct hvd_job *job, const struct hvd_request *request,
                     struct hvd_error *err)
{
    const struct hvd_descriptor *descriptor = &request->entries[0].descriptor;
    struct hvd_start start = {.kind = descriptor->kind,
                              .word = request->range_name,
                              .set = descriptor->set,
                              .root = descriptor->root};

    int status;

    if (descriptor->set == HVD_SET_GLOBAL) {
        return 0;
    }
    status = hvd_start_check(job, &start, err);
    if (status == 0 && start.set_size != request->set_size) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "process set %d had %d ranks when the request was first started, "
                        "and has %d now: free the request and start another",
                        descriptor->set, request->set_size, start.set_size);
    }
    return status;
}

static int check_tensors(const struct hvd_request *request,
                         const struct hvd_tensor *tensors, struct hvd_error *err)
{
    for (int i = 0; i < request->count; i++) {
        const struct hvd_entry *entry = &request->entries[i];
        bool lacks_input = tensors[i].input == NULL && entry->input != NULL;
        bool lacks_output = tensors[i].output == NULL && entry->output != NULL;

        if (lacks_input || lacks_output) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "tensor %s: its %s is NULL, but was not when the request was "
                            "first started",
                            entry->descriptor.name, lacks_input ? "input" : "output");
        }
        if (tensors[i].device != HVD_DEVICE_CPU) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "tensor %s is on GPU %d, but was in host memory when the "
                            "request was first started",
                            entry->descriptor.name, tensors[i].device);
        }
    }
    return 0;
}

static void take_tensors(struct hvd_request *request, const struct hvd_tensor *tensors)
{
    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        entry->input = tensors[i].input;
        entry->output = tensors[i].output;
        entry->descriptor.call = tensors[i].call;
    }
}

static int check_all(struct hvd_job *job, const struct hvd_request *request,
                     const struct hvd_tensor *tensors, struct hvd_error *err)
{
    int status = check_request(request, err);

    if (status != 0) {
        return status;
    }
    if (request->job != hvd_job_number()) {
        return hvd_fail(
            err, HVD_ERR_STATE,
            "the request is of a job that has ended: free it and start another");
    }
    if (tensors == NULL && request->entries[0].descriptor.call != 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "a numbered call needs its tensors again, with a new call number");
    }
    status = tensors != NULL ? check_tensors(request, tensors, err) : 0;
    if (status != 0) {
        return status;
    }
    return check_set(job, request, err);
}

static int start_again(struct hvd_job *job, struct hvd_request *request,
                       const struct hvd_tensor *tensors, struct hvd_error *err)
{
    struct hvd_error failure = {0};
    int status = check_all(job, request, tensors, err);

    if (status != 0) {
        return status;
    }
    if (tensors != NULL) {
        take_tensors(request, tensors);
    }
    hvd_request_reset(request);
    request->is_persistent = true;
    status = hvd_job_submit(job, request, &failure);
    if (status != 0) {
        request->error = failure;
        atomic_store(&request->status, status);
        return hvd_fail(err, status, "%s", failure.text);
    }
    return 0;
}

HVD_EXPORT int hvd_request_start(struct hvd_request *request,
                                 const struct hvd_tensor *tensors, struct hvd_error *err)
{
    struct hvd_job *job = hvd_job_enter(err);
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    status = request == NULL
                 ? hvd_fail(err, HVD_ERR_ARG, "hvd_request_start needs a request")
                 : start_again(job, request, tensors, err);
    hvd_job_exit();
    return status;
}
