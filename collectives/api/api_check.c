/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: what a collective is started with, checked and written down. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/api/api_start.h"
#include "collectives/engine/process_sets.h"
#include "collectives/reduce/adasum.h"
#include "collectives/transport/shm/shared.h"

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

/* Its name, type and device. Barriers and the like have names of the library's own. */
static int check_tensor(const struct hvd_start *start, const struct hvd_tensor *tensor,
                        struct hvd_error *err)
{
    const char *name = tensor->name;

    if (name == NULL || name[0] == '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "a tensor needs a name");
    }
    if (!start->is_own_name &&
        strncmp(name, HVD_RESERVED_NAMES, strlen(HVD_RESERVED_NAMES)) == 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: names that begin with " HVD_RESERVED_NAMES
                        " are the library's own; choose another",
                        name);
    }
    if (hvd_dtype_bytes(tensor->dtype) == 0) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no dtype %d", tensor->name,
                        tensor->dtype);
    }
    if (tensor->device < HVD_DEVICE_CPU) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no device %d",
                        tensor->name, tensor->device);
    }
    return 0;
}

static int check_op(const struct hvd_start *start, const struct hvd_tensor *tensor,
                    struct hvd_error *err)
{
    if (start->kind == HVD_KIND_REDUCESCATTER && start->op != HVD_AVERAGE &&
        start->op != HVD_SUM) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "Reducescatter currently only supports AVERAGE and SUM.");
    }
    if (start->op == HVD_ADASUM) {
        return hvd_adasum_check(tensor->name, tensor->dtype, start->set_size, err);
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

/* Of one that is given. */
static int check_wire(const struct hvd_start *start, const struct hvd_tensor *tensor,
                      struct hvd_error *err)
{
    const char *name = hvd_dtype_name((enum hvd_dtype)tensor->wire);

    if (tensor->wire != HVD_FLOAT16 && tensor->wire != HVD_BFLOAT16) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: wire type %d: it is 0, %d (float16) or %d (bfloat16)",
                        tensor->name, tensor->wire, HVD_FLOAT16, HVD_BFLOAT16);
    }
    if (start->kind != HVD_KIND_ALLREDUCE ||
        (start->op != HVD_SUM && start->op != HVD_AVERAGE)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: %s with wire type %s and op %d: only Allreduce with "
                        "Sum (%d) or Average (%d) takes a wire type",
                        tensor->name, start->word, name, start->op, HVD_SUM, HVD_AVERAGE);
    }
    if (tensor->dtype != HVD_FLOAT32) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s is %s: with wire type %s it has to be float32",
                        tensor->name, hvd_dtype_name(tensor->dtype), name);
    }
    return 0;
}

int hvd_check_place(struct hvd_engine *engine, struct hvd_start *start,
                    struct hvd_error *err)
{
    const int root = start->kind == HVD_KIND_BROADCAST ? start->root : -1;
    struct hvd_set_place place;

    if (hvd_process_sets_find(hvd_engine_process_sets(engine), start->set, root,
                              &place) != 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%s: Process set provided does not exist, or has not been registered.",
            start->word);
    }
    start->rank = place.rank;
    start->set_size = place.size;
    start->index = place.index;
    if (place.index < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: Rank %d is not a member of the provided process set.",
                        start->word, start->rank);
    }
    if (start->kind == HVD_KIND_BROADCAST && place.root_index < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "broadcast received invalid root rank %d for provided process set",
            start->root);
    }
    return 0;
}

static int fill_given_splits(const struct hvd_start *start, int size, int64_t rows,
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

static int fill_splits(const struct hvd_start *start, int size, struct hvd_entry *entry,
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

/* Whether its input, which is its output, may be added up where it is, by all ranks of the node. */
static bool is_shared(const struct hvd_start *start, const struct hvd_tensor *tensor)
{
    size_t bytes = hvd_dtype_bytes(tensor->dtype);
    struct hvd_shared_place place;

    if (start->kind != HVD_KIND_ALLREDUCE || tensor->device != HVD_DEVICE_CPU ||
        tensor->wire != 0) {
        return false;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)tensor->shape[i];
    }
    return bytes > 0 && hvd_shared_find(tensor->input, bytes, &place);
}

static int fill_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                      struct hvd_entry *entry, struct hvd_error *err)
{
    entry->input = tensor->input;
    entry->output = tensor->output;
    entry->device = tensor->device;
    entry->proposal = (struct hvd_proposal){
        .set = start->set,
        .kind = start->kind,
        .dtype = tensor->dtype,
        .wire = tensor->wire,
        .op = start->op,
        .root = start->root,
        .device = tensor->device == HVD_DEVICE_CPU ? HVD_DEVICE_CPU : HVD_PROPOSAL_GPU,
        .is_shared = tensor->input == tensor->output && is_shared(start, tensor),
        .ndim = tensor->ndim,
        .prescale = start->prescale,
        .postscale = start->postscale,
        .name = strdup(tensor->name),
        .note = start->note != NULL ? strdup(start->note) : NULL,
    };
    if (entry->proposal.name == NULL ||
        (start->note != NULL && entry->proposal.note == NULL)) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s", tensor->name);
    }
    if (tensor->ndim > 0) {
        memcpy(entry->proposal.shape, tensor->shape,
               (size_t)tensor->ndim * sizeof(tensor->shape[0]));
    }
    return start->kind == HVD_KIND_ALLTOALL
               ? fill_splits(start, start->set_size, entry, err)
               : 0;
}

/* Whether this rank has rows of what a reducescatter leaves. */
static bool gets_part(const struct hvd_start *start, const struct hvd_entry *entry)
{
    return start->kind == HVD_KIND_REDUCESCATTER && entry->proposal.ndim > 0 &&
           start->index < entry->proposal.shape[0];
}

/* Memory that is needed and not there. Only the root of a broadcast gives input; where the
 * library allocates there is no output; a barrier has neither. */
static int check_memory(const struct hvd_start *start, const struct hvd_entry *entry,
                        struct hvd_error *err)
{
    bool has_data = start->kind <= HVD_KIND_REDUCESCATTER &&
                    start->kind != HVD_KIND_BARRIER && start->kind != HVD_KIND_JOIN;
    bool lacks_input = entry->input == NULL && has_data &&
                       (start->kind != HVD_KIND_BROADCAST || start->root == start->rank);
    bool lacks_output =
        entry->output == NULL &&
        (start->kind == HVD_KIND_ALLREDUCE || start->kind == HVD_KIND_ADASUM ||
         start->kind == HVD_KIND_BROADCAST || gets_part(start, entry));

    if ((!lacks_input && !lacks_output) || hvd_entry_count(entry) == 0) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_ARG, "tensor %s has elements, but its %s is NULL",
                    entry->proposal.name, lacks_input ? "input" : "output");
}

int hvd_check_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                    struct hvd_entry *entry, struct hvd_error *err)
{
    int status = check_tensor(start, tensor, err);

    status = status != 0 ? status : check_shape(tensor, err);
    status = status != 0 ? status : check_op(start, tensor, err);
    if (status == 0 && tensor->wire != 0) {
        status = check_wire(start, tensor, err);
    }
    status = status != 0 ? status : fill_entry(start, tensor, entry, err);
    return status != 0 ? status : check_memory(start, entry, err);
}
