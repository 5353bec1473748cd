/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: sends and receives between two ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/request/request.h"
#include "collectives/api/api.h"
#include "collectives/api/api_start.h"
#include "collectives/set/sets.h"
#include "gpu_binding/base/attr.h"

/* Checks type, shape and device. */
static int check_tensor(const struct hvd_tensor *tensor, struct hvd_error *err)
{
    if (tensor->device < HVD_DEVICE_CPU) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no device %d",
                        tensor->name, tensor->device);
    }
    if (hvd_dtype_bytes(tensor->dtype) == 0) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no dtype %d", tensor->name,
                        tensor->dtype);
    }
    return hvd_start_check_shape(tensor, err);
}

static size_t count_bytes(const struct hvd_tensor *tensor)
{
    size_t bytes = hvd_dtype_bytes(tensor->dtype);

    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)tensor->shape[i];
    }
    return bytes;
}

/* Checks that the set exists and both ranks are members. */
static int check_place(struct hvd_job *job, const struct hvd_entry *entry,
                       struct hvd_error *err)
{
    const bool sends = entry->descriptor.kind == HVD_KIND_SEND;
    const int other = entry->descriptor.root, set = entry->descriptor.set;
    const char *word = sends ? "send to" : "receive from";
    struct hvd_set_position position;

    if (hvd_sets_position(hvd_job_sets(job), set, other, &position) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "%s rank %d: there is no process set %d", word,
                        other, set);
    }
    if (position.index < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s rank %d: this is rank %d, which is not in process set %d",
                        word, other, position.rank, set);
    }
    if (position.root_index < 0 && (sends || other != HVD_ANY_SOURCE)) {
        return hvd_fail(err, HVD_ERR_ARG, "%s rank %d: process set %d has no such rank",
                        word, other, set);
    }
    return 0;
}

static int put_on_gpu(struct hvd_job *job, const struct hvd_tensor *tensor,
                      struct hvd_entry *entry, struct hvd_error *err)
{
    int status = hvd_start_gpu(job, tensor, entry->request, err);

    return status != 0 ? status : hvd_job_find_p2p_memory(job, entry, err);
}

static int fill_entry(struct hvd_job *job, const struct hvd_tensor *tensor,
                      struct hvd_entry *entry, struct hvd_error *err)
{
    const bool sends = entry->descriptor.kind == HVD_KIND_SEND;
    struct hvd_tensor named = *tensor; /* the name appears in error texts only */
    int status;

    named.name = tensor->name != NULL ? tensor->name : "(without a name)";
    status = check_tensor(&named, err);
    if (status != 0) {
        return status;
    }
    status = check_place(job, entry, err);
    if (status != 0) {
        return status;
    }
    entry->input = tensor->input;
    entry->output = tensor->output;
    entry->output_bytes = count_bytes(tensor);
    entry->device = tensor->device;
    entry->descriptor.dtype = tensor->dtype;
    entry->descriptor.name = tensor->name != NULL ? strdup(tensor->name) : NULL;
    if (entry->output_bytes > 0 && (sends ? entry->input : entry->output) == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "a message has %zu bytes, but its %s is NULL",
                        entry->output_bytes, sends ? "input" : "output");
    }
    return tensor->device == HVD_DEVICE_CPU ? 0 : put_on_gpu(job, &named, entry, err);
}

/* The arguments of a send or receive, besides the tensor. */
struct about {
    enum hvd_kind kind;
    int other;
    int set;
    int64_t tag;
};

static int start_request(const struct about *about, const struct hvd_tensor *tensor,
                         struct hvd_request **out, struct hvd_error *err)
{
    struct hvd_request *request;
    struct hvd_job *job;
    int status;

    if (tensor == NULL || out == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "a message needs a tensor and a request");
    }
    job = hvd_job_enter(err);
    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    request = hvd_request_create(1);
    if (request == NULL) {
        hvd_job_exit();
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a message");
    }
    request->tag = about->tag;
    request->is_optional = err == NULL;
    request->entries[0].descriptor.kind = about->kind;
    request->entries[0].descriptor.root = about->other;
    request->entries[0].descriptor.set = about->set;
    status = fill_entry(job, tensor, request->entries, err);
    if (status == 0) {
        status = hvd_job_submit_p2p(job, request, err);
    }
    hvd_job_exit();
    if (status != 0) {
        hvd_request_drop(request);
        return status;
    }
    *out = request;
    return 0;
}

HVD_EXPORT int hvd_send_start(const struct hvd_tensor *tensor, int dest, int64_t tag,
                              int set, struct hvd_request **request,
                              struct hvd_error *err)
{
    const struct about about = {
        .kind = HVD_KIND_SEND, .other = dest, .set = set, .tag = tag};

    return start_request(&about, tensor, request, err);
}

HVD_EXPORT int hvd_recv_start(const struct hvd_tensor *tensor, int source, int64_t tag,
                              int set, struct hvd_request **request,
                              struct hvd_error *err)
{
    const struct about about = {
        .kind = HVD_KIND_RECEIVE, .other = source, .set = set, .tag = tag};

    return start_request(&about, tensor, request, err);
}
