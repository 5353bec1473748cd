/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: starting collectives. Checks arguments, fills a request, submits. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/api.h"
#include "gpu_binding/attr.h"

/* What a start function is asked for, besides the tensors. */
struct start {
    enum hvd_kind kind;
    const char *word; /* as Horovod's messages begin: "Allreduce" */
    enum hvd_op op;
    double prescale;
    double postscale;
    int set;
    int root;
    const int32_t *splits;
    int nsplits;
};

static int check_shape(const struct hvd_tensor *tensor, struct hvd_error *err)
{
    int64_t extent =
        1; /* as if no dimension were 0: rows are counted without the first */

    if (tensor->ndim < 0 || tensor->ndim > HVD_MAX_DIMS ||
        (tensor->ndim > 0 && tensor->shape == NULL)) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s has %d dimensions, of 0 to %d",
                        tensor->name, tensor->ndim, HVD_MAX_DIMS);
    }
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0) {
            return hvd_fail(err, HVD_ERR_ARG, "tensor %s: dimension %d is %" PRId64,
                            tensor->name, i, tensor->shape[i]);
        }
        if (tensor->shape[i] > 0 && extent > INT64_MAX / 16 / tensor->shape[i]) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "tensor %s is larger than the address space", tensor->name);
        }
        extent *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
    }
    return 0;
}

static int check_tensor(const struct hvd_tensor *tensor, struct hvd_error *err)
{
    if (tensor->name == NULL || tensor->name[0] == '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "a tensor needs a name");
    }
    if (hvd_dtype_bytes(tensor->dtype) == 0) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no dtype %d", tensor->name,
                        tensor->dtype);
    }
    if (tensor->device != HVD_DEVICE_CPU) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "tensor %s is on GPU %d: this version of hvd takes tensors in host "
            "memory only",
            tensor->name, tensor->device);
    }
    return check_shape(tensor, err);
}

static int check_op(const struct start *start, const struct hvd_tensor *tensor,
                    struct hvd_error *err)
{
    if (start->kind == HVD_KIND_REDUCESCATTER && start->op != HVD_AVERAGE &&
        start->op != HVD_SUM) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "Reducescatter currently only supports AVERAGE and SUM.");
    }
    if (start->op == HVD_ADASUM) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "tensor %s: this version of hvd has no Adasum; use Average or Sum",
            tensor->name);
    }
    if (start->op < 0 || start->op >= HVD_OP_COUNT) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no reduction op %d",
                        tensor->name, start->op);
    }
    if (start->op == HVD_AVERAGE && tensor->dtype == HVD_BOOL) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "tensor %s: there is no average of booleans; use Sum (or), Min (and) "
            "or Max (or)",
            tensor->name);
    }
    return 0;
}

static int check_place(const struct start *start, const struct hvd_boot *boot,
                       struct hvd_error *err)
{
    if (start->set != HVD_SET_GLOBAL) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%s: Process set provided does not exist, or has not been registered.",
            start->word);
    }
    if (start->kind == HVD_KIND_BROADCAST &&
        (start->root < 0 || start->root >= boot->size)) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "broadcast received invalid root rank %d for provided process set",
            start->root);
    }
    return 0;
}

static int fill_given_splits(const struct start *start, int size, int64_t rows,
                             struct hvd_entry *entry, struct hvd_error *err)
{
    int64_t sum = 0;

    if (start->nsplits != size) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "Number of entries in splits does not equal number of workers.");
    }
    for (int i = 0; i < size; i++) {
        if (start->splits[i] < 0) {
            return hvd_fail(err, HVD_ERR_ARG, "splits[%d] is %d: it must not be negative",
                            i, start->splits[i]);
        }
        entry->splits[i] = start->splits[i];
        sum += start->splits[i];
    }
    if (sum > rows) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "Sum of splits entries is greater than the first dimension of tensor.");
    }
    return 0;
}

static int fill_even_splits(int size, int64_t rows, struct hvd_entry *entry,
                            struct hvd_error *err)
{
    if (rows % size != 0 || rows / size > INT32_MAX) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "splits not provided, but first dimension of tensor is not an even "
            "multiple of the number of workers.");
    }
    for (int i = 0; i < size; i++) {
        entry->splits[i] = (int32_t)(rows / size);
    }
    return 0;
}

static int fill_splits(const struct start *start, int size, struct hvd_entry *entry,
                       struct hvd_error *err)
{
    int64_t rows = entry->proposal.ndim > 0 ? entry->proposal.shape[0] : 0;
    int status;

    entry->split_count = size;
    entry->splits = calloc((size_t)size, sizeof(entry->splits[0]));
    if (entry->splits == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for splits");
    }
    status = start->splits != NULL ? fill_given_splits(start, size, rows, entry, err)
                                   : fill_even_splits(size, rows, entry, err);
    for (int i = 0; i < size; i++) {
        if (entry->splits[i] > entry->proposal.max_block) {
            entry->proposal.max_block = entry->splits[i];
        }
    }
    return status;
}

static int fill_entry(const struct start *start, const struct hvd_tensor *tensor,
                      int size, struct hvd_entry *entry, struct hvd_error *err)
{
    entry->input = tensor->input;
    entry->output = tensor->output;
    entry->proposal = (struct hvd_proposal){
        .set = start->set,
        .kind = start->kind,
        .dtype = tensor->dtype,
        .op = start->op,
        .root = start->root,
        .device = tensor->device,
        .ndim = tensor->ndim,
        .prescale = start->prescale,
        .postscale = start->postscale,
        .name = strdup(tensor->name),
    };
    if (entry->proposal.name == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s", tensor->name);
    }
    if (tensor->ndim > 0) {
        memcpy(entry->proposal.shape, tensor->shape,
               (size_t)tensor->ndim * sizeof(tensor->shape[0]));
    }
    return start->kind == HVD_KIND_ALLTOALL ? fill_splits(start, size, entry, err) : 0;
}

/* Memory that is needed and not there. Only the root of a broadcast gives input; where the
 * library allocates there is no output; a barrier has neither. */
static int check_memory(const struct start *start, const struct hvd_boot *boot,
                        const struct hvd_entry *entry, struct hvd_error *err)
{
    bool gives = start->kind != HVD_KIND_BARRIER &&
                 (start->kind != HVD_KIND_BROADCAST || start->root == boot->rank);
    bool gets = start->kind == HVD_KIND_ALLREDUCE || start->kind == HVD_KIND_BROADCAST;

    if (hvd_entry_count(entry) == 0 || (!gives && !gets)) {
        return 0;
    }
    if (gives && entry->input == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s has elements, but its input is NULL",
                        entry->proposal.name);
    }
    if (gets && entry->output == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s has elements, but its output is NULL",
                        entry->proposal.name);
    }
    return 0;
}

static int fill_request(const struct start *start, const struct hvd_tensor *tensors,
                        int count, const struct hvd_boot *boot,
                        struct hvd_request *request, struct hvd_error *err)
{
    int status = check_place(start, boot, err);

    for (int i = 0; status == 0 && i < count; i++) {
        status = check_tensor(&tensors[i], err);
        status = status != 0 ? status : check_op(start, &tensors[i], err);
        status = status != 0 ? status
                             : fill_entry(start, &tensors[i], boot->size,
                                          &request->entries[i], err);
        status =
            status != 0 ? status : check_memory(start, boot, &request->entries[i], err);
    }
    return status;
}

static int submit(const struct start *start, const struct hvd_tensor *tensors, int count,
                  struct hvd_request **out, struct hvd_error *err)
{
    struct hvd_engine *engine;
    struct hvd_request *request;
    int status;

    if (count < 1 || tensors == NULL || out == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s of %d tensors: at least one is needed",
                        start->word, count);
    }
    engine = hvd_job_enter(err);
    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    request = hvd_request_create(count);
    status =
        request == NULL
            ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word)
            : fill_request(start, tensors, count, hvd_engine_boot(engine), request, err);
    status = status != 0 ? status : hvd_engine_submit(engine, request, err);
    hvd_job_exit();
    if (status != 0) {
        hvd_request_destroy(request);
        return status;
    }
    *out = request;
    return 0;
}

HVD_EXPORT int hvd_allreduce_start(const struct hvd_tensor *tensors, int count,
                                   enum hvd_op op, double prescale, double postscale,
                                   int set, struct hvd_request **request,
                                   struct hvd_error *err)
{
    const struct start start = {
        .kind = HVD_KIND_ALLREDUCE,
        .word = "Allreduce",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    const struct start start = {
        .kind = HVD_KIND_ALLGATHER, .word = "Allgather", .op = HVD_SUM, .set = set};

    return submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    const struct start start = {.kind = HVD_KIND_BROADCAST,
                                .word = "Broadcast",
                                .op = HVD_SUM,
                                .set = set,
                                .root = root};

    return submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                                  int nsplits, int set, struct hvd_request **request,
                                  struct hvd_error *err)
{
    const struct start start = {.kind = HVD_KIND_ALLTOALL,
                                .word = "Alltoall",
                                .op = HVD_SUM,
                                .set = set,
                                .splits = splits,
                                .nsplits = nsplits};

    return submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count,
                                       enum hvd_op op, double prescale, double postscale,
                                       int set, struct hvd_request **request,
                                       struct hvd_error *err)
{
    const struct start start = {
        .kind = HVD_KIND_REDUCESCATTER,
        .word = "Reducescatter",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_barrier_start(int set, struct hvd_request **request,
                                 struct hvd_error *err)
{
    const struct start start = {
        .kind = HVD_KIND_BARRIER, .word = "Barrier", .op = HVD_SUM, .set = set};
    struct hvd_engine *engine = hvd_job_enter(err);
    char name[40];
    struct hvd_tensor tensor = {
        .name = name, .dtype = HVD_UINT8, .device = HVD_DEVICE_CPU};
    int status;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    /* Before it is counted: other ranks may not have made the mistake. */
    status = check_place(&start, hvd_engine_boot(engine), err);
    if (status == 0) {
        snprintf(name, sizeof(name), "hvd.barrier.%" PRIu64,
                 hvd_engine_next_barrier(engine));
    }
    hvd_job_exit();
    return status != 0 ? status : submit(&start, &tensor, 1, request, err);
}
