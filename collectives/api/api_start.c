/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: starting collectives. Each call is checked and becomes a
 * request. */
#include "collectives/api/api_start.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/hash_table.h"
#include "collectives/set/sets.h"
#include "collectives/reduce/adasum.h"
#include "gpu_binding/base/attr.h"

/* --- checks of the arguments --- */

int hvd_start_check_shape(const struct hvd_tensor *tensor, struct hvd_error *err)
{
    /* dimensions of 0 count as 1: rows are counted without the first dimension */
    int64_t extent = 1;

    if (tensor->ndim < 0 || tensor->ndim > HVD_MAX_DIMS ||
        (tensor->ndim > 0 && tensor->shape == NULL)) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s has %d dimensions: expected 0 to %d",
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

/* Checks name, type and device. Only the library itself may use reserved names, for
 * barriers and the like. */
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
    if ((unsigned)tensor->dtype >= HVD_DTYPE_COUNT) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no dtype %d", tensor->name,
                        tensor->dtype);
    }
    if (tensor->call == HVD_CALL_UNORDERED) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "tensor %s: call is HVD_CALL_UNORDERED alone: add it to the number "
            "of the call",
            tensor->name);
    }
    if (tensor->device < HVD_DEVICE_CPU) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s: there is no device %d",
                        tensor->name, tensor->device);
    }
    return 0;
}

static int check_bitwise(const struct hvd_start *start, const struct hvd_tensor *tensor,
                         struct hvd_error *err)
{
    if (hvd_dtype_is_float(tensor->dtype)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s is %s: the bitwise ops take integers and bool",
                        tensor->name, hvd_dtype_name(tensor->dtype));
    }
    if (start->prescale != 1.0 || start->postscale != 1.0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: the bitwise ops take no factors, but prescale is %g "
                        "and postscale %g: give 1.0",
                        tensor->name, start->prescale, start->postscale);
    }
    return 0;
}

static int check_op(const struct hvd_start *start, const struct hvd_tensor *tensor,
                    struct hvd_error *err)
{
    if (start->op == HVD_ADASUM &&
        (start->kind == HVD_KIND_REDUCESCATTER || start->kind == HVD_KIND_REDUCE)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: there is no %s with op Adasum; use Average or Sum",
                        tensor->name, start->word);
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
    if (start->op >= HVD_BAND) {
        return check_bitwise(start, tensor, err);
    }
    return 0;
}

/* Checks a wire type that is not 0. */
static int check_wire(const struct hvd_start *start, const struct hvd_tensor *tensor,
                      struct hvd_error *err)
{
    const char *name = hvd_dtype_name((enum hvd_dtype)tensor->wire);

    if (tensor->wire != HVD_FLOAT16 && tensor->wire != HVD_BFLOAT16) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: wire type %d is not 0, %d (float16) or %d (bfloat16)",
                        tensor->name, tensor->wire, HVD_FLOAT16, HVD_BFLOAT16);
    }
    if (start->kind != HVD_KIND_ALLREDUCE ||
        (start->op != HVD_SUM && start->op != HVD_AVERAGE)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: %s with wire type %s and op %s: only Allreduce with "
                        "Sum or Average takes a wire type",
                        tensor->name, start->word, name, hvd_op_name(start->op));
    }
    if (tensor->dtype != HVD_FLOAT32) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s is %s: wire type %s needs a float32 tensor",
                        tensor->name, hvd_dtype_name(tensor->dtype), name);
    }
    return 0;
}

int hvd_start_check(struct hvd_job *job, struct hvd_start *start, struct hvd_error *err)
{
    const bool has_root = hvd_kind_has_root(start->kind);
    char word[HVD_KIND_WORD];
    struct hvd_set_position position;

    if (hvd_sets_position(hvd_job_sets(job), start->set, has_root ? start->root : -1,
                          &position) != 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%s: Process set provided does not exist, or has not been registered.",
            start->word);
    }
    start->rank = position.rank;
    start->set_size = position.size;
    start->index = position.index;
    if (position.index < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: Rank %d is not a member of the provided process set.",
                        start->word, start->rank);
    }
    if (has_root && position.root_index < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s received invalid root rank %d for provided process set",
                        hvd_kind_word(start->kind, word), start->root);
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
    int64_t rows = entry->descriptor.ndim > 0 ? entry->descriptor.shape[0] : 0;
    int status;

    entry->split_count = size;
    entry->splits = calloc((size_t)size, sizeof(entry->splits[0]));
    if (entry->splits == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for splits");
    }
    status = start->splits != NULL ? fill_given_splits(start, size, rows, entry, err)
                                   : fill_even_splits(size, rows, entry, err);
    for (int i = 0; i < size; i++) {
        if (entry->splits[i] > entry->descriptor.max_block) {
            entry->descriptor.max_block = entry->splits[i];
        }
    }
    return status;
}

/* Checks the memory that the caller gives for a result of unknown size. */
static int check_room(const struct hvd_start *start, const struct hvd_tensor *tensor,
                      const struct hvd_entry *entry, struct hvd_error *err)
{
    uintptr_t input = (uintptr_t)tensor->input, output = (uintptr_t)tensor->output;
    uintptr_t bytes = (uintptr_t)hvd_descriptor_bytes(&entry->descriptor);

    if (tensor->output == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s has output_bytes %zu, but its output is NULL",
                        tensor->name, entry->output_bytes);
    }
    if (start->kind == HVD_KIND_ALLTOALL && input < output + entry->output_bytes &&
        output < input + bytes) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: input and output of an alltoall overlap; use other "
                        "memory for one of them",
                        tensor->name);
    }
    return 0;
}

/* Whether this rank gets rows for which the library can allocate memory. */
static bool is_gathered(const struct hvd_start *start)
{
    return start->kind == HVD_KIND_ALLGATHER || start->kind == HVD_KIND_ALLTOALL ||
           (start->kind == HVD_KIND_GATHER && start->root == start->rank);
}

static int fill_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                      struct hvd_entry *entry, struct hvd_error *err)
{
    entry->input = tensor->input;
    entry->output = tensor->output;
    if (tensor->output_bytes > 0 && is_gathered(start)) {
        entry->output_bytes = tensor->output_bytes & ~HVD_OUTPUT_IF_FITS;
        entry->may_allocate = (tensor->output_bytes & HVD_OUTPUT_IF_FITS) != 0;
    }
    entry->device = tensor->device;
    entry->descriptor = (struct hvd_descriptor){
        .set = start->set,
        .kind = start->kind,
        .dtype = tensor->dtype,
        .wire = tensor->wire,
        .op = start->op,
        .root = start->root,
        .device = tensor->device == HVD_DEVICE_CPU ? HVD_DEVICE_CPU : HVD_DESCRIPTOR_GPU,
        .ndim = tensor->ndim,
        .call = tensor->call,
        .prescale = start->prescale,
        .postscale = start->postscale,
        .name = strdup(tensor->name),
        .note = start->note != NULL ? strdup(start->note) : NULL,
    };
    if (entry->descriptor.name == NULL ||
        (start->note != NULL && entry->descriptor.note == NULL)) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s", tensor->name);
    }
    if (tensor->ndim > 0) {
        memcpy(entry->descriptor.shape, tensor->shape,
               (size_t)tensor->ndim * sizeof(tensor->shape[0]));
    }
    return start->kind == HVD_KIND_ALLTOALL
               ? fill_splits(start, start->set_size, entry, err)
               : 0;
}

/* Whether this rank contributes data. */
static bool has_input(const struct hvd_start *start)
{
    bool is_given = start->kind == HVD_KIND_BROADCAST || start->kind == HVD_KIND_SCATTER;

    return start->kind <= HVD_KIND_SCATTER && start->kind != HVD_KIND_BARRIER &&
           start->kind != HVD_KIND_JOIN && (!is_given || start->root == start->rank);
}

/* Whether this rank gets a result in memory that the library does not allocate. */
static bool has_output(const struct hvd_start *start, const struct hvd_entry *entry)
{
    switch (start->kind) {
    case HVD_KIND_ALLREDUCE:
    case HVD_KIND_ADASUM:
    case HVD_KIND_BROADCAST:
        return true;
    case HVD_KIND_REDUCE:
        return start->root == start->rank;
    case HVD_KIND_REDUCESCATTER:
    case HVD_KIND_SCATTER:
        return entry->descriptor.ndim > 0 && start->index < entry->descriptor.shape[0];
    default:
        return false;
    }
}

/* Fails if the caller's memory for a tensor with elements is NULL. */
static int check_memory(const struct hvd_start *start, const struct hvd_entry *entry,
                        struct hvd_error *err)
{
    bool lacks_input = entry->input == NULL && has_input(start);
    bool lacks_output = entry->output == NULL && has_output(start, entry);

    if ((!lacks_input && !lacks_output) || hvd_entry_count(entry) == 0) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_ARG, "tensor %s has elements, but its %s is NULL",
                    entry->descriptor.name, lacks_input ? "input" : "output");
}

int hvd_start_fill_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                         struct hvd_entry *entry, struct hvd_error *err)
{
    int status = check_tensor(start, tensor, err);

    if (status != 0) {
        return status;
    }
    status = hvd_start_check_shape(tensor, err);
    if (status != 0) {
        return status;
    }
    status = check_op(start, tensor, err);
    if (status == 0 && tensor->wire != 0) {
        status = check_wire(start, tensor, err);
    }
    if (status != 0) {
        return status;
    }
    status = fill_entry(start, tensor, entry, err);
    if (status != 0) {
        return status;
    }
    if (entry->output_bytes > 0) {
        status = check_room(start, tensor, entry, err);
    }
    return status != 0 ? status : check_memory(start, entry, err);
}

/* --- the request --- */

/* Makes the tensors of one call a group. All ranks that make the same call compute the
 * same number for it. */
static void form_group(struct hvd_request *request)
{
    uint64_t group = (uint64_t)request->count;

    for (int i = 0; i < request->count; i++) {
        struct hvd_key key = hvd_key_make(0, request->entries[i].descriptor.name);

        group = hvd_hash_number(group ^ key.hash);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].descriptor.group = group;
        request->entries[i].descriptor.group_size = request->count;
    }
}

static int check_devices(const struct hvd_tensor *tensors, int count,
                         struct hvd_error *err)
{
    for (int i = 1; i < count; i++) {
        if (tensors[i].device != tensors[0].device ||
            tensors[i].stream != tensors[0].stream) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "tensors %.100s and %.100s of one call are on different %s: "
                            "start them in separate calls",
                            tensors[0].name, tensors[i].name,
                            tensors[i].device != tensors[0].device ? "devices"
                                                                   : "streams");
        }
    }
    return 0;
}

static int fill_request(struct hvd_job *job, struct hvd_start *start,
                        const struct hvd_tensor *tensors, struct hvd_request *request,
                        struct hvd_error *err)
{
    const int count = request->count;
    int status = hvd_start_check(job, start, err);

    for (int i = 0; status == 0 && i < count; i++) {
        status = hvd_start_fill_entry(start, &tensors[i], &request->entries[i], err);
    }
    if (status == 0 && count > 1) {
        form_group(request);
        status = check_devices(tensors, count, err);
    }
    return status != 0 || tensors[0].device == HVD_DEVICE_CPU
               ? status
               : hvd_start_gpu(job, tensors, request, err);
}

int hvd_start_submit(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                     struct hvd_request **out, struct hvd_error *err)
{
    struct hvd_job *job;
    struct hvd_request *request;
    int status;

    if (count < 1 || tensors == NULL || out == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s of %d tensors: at least one is needed",
                        start->word, count);
    }
    job = hvd_job_enter(err);
    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    request = hvd_request_create(count);
    assert(request == NULL || request->count == count);
    status = request == NULL
                 ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word)
                 : fill_request(job, start, tensors, request, err);
    if (status == 0) {
        request->range_name = start->is_own_name ? NULL : start->word;
        request->job = hvd_job_number();
        request->set_size = start->set_size;
        request->is_optional = err == NULL;
        status = hvd_job_submit(job, request, err);
    }
    hvd_job_exit();
    if (status != 0) {
        hvd_request_drop(request);
        return status;
    }
    *out = request;
    return 0;
}

int hvd_start_named(struct hvd_start *start, const char *name, struct hvd_request **out,
                    struct hvd_error *err)
{
    const struct hvd_tensor tensor = {
        .name = name,
        .dtype = HVD_UINT8,
        .device = HVD_DEVICE_CPU,
        .call = start->call,
    };

    start->op = HVD_SUM;
    start->is_own_name = true;
    return hvd_start_submit(start, &tensor, 1, out, err);
}

int hvd_start_without_tensor(struct hvd_start *start, const char *word, int64_t number,
                             struct hvd_request **out, struct hvd_error *err)
{
    char name[64];

    if (number < 0) {
        snprintf(name, sizeof(name), HVD_RESERVED_NAMES "%s", word);
    } else {
        snprintf(name, sizeof(name), HVD_RESERVED_NAMES "%s.%" PRId64, word, number);
    }
    return hvd_start_named(start, name, out, err);
}

/* --- the interface --- */

HVD_EXPORT int hvd_allreduce_start(const struct hvd_tensor *tensors, int count,
                                   enum hvd_op op, double prescale, double postscale,
                                   int set, struct hvd_request **request,
                                   struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = op == HVD_ADASUM ? HVD_KIND_ADASUM : HVD_KIND_ALLREDUCE,
        .word = "Allreduce",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_ALLGATHER, .word = "Allgather", .op = HVD_SUM, .set = set};

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_BROADCAST,
                              .word = "Broadcast",
                              .op = HVD_SUM,
                              .set = set,
                              .root = root};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                                  int nsplits, int set, struct hvd_request **request,
                                  struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_ALLTOALL,
                              .word = "Alltoall",
                              .op = HVD_SUM,
                              .set = set,
                              .splits = splits,
                              .nsplits = nsplits};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count,
                                       enum hvd_op op, double prescale, double postscale,
                                       int set, struct hvd_request **request,
                                       struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_REDUCESCATTER,
        .word = "Reducescatter",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_reduce_start(const struct hvd_tensor *tensor, enum hvd_op op,
                                double prescale, double postscale, int root, int set,
                                struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_REDUCE,
        .word = "Reduce",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
        .root = root,
    };

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_gather_start(const struct hvd_tensor *tensor, int root, int set,
                                struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_GATHER,
                              .word = "Gather",
                              .op = HVD_SUM,
                              .set = set,
                              .root = root};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_scatter_start(const struct hvd_tensor *tensor, int root, int set,
                                 struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_SCATTER,
                              .word = "Scatter",
                              .op = HVD_SUM,
                              .set = set,
                              .root = root};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

/* Starts a barrier. hvd_barrier_call_start and hvd_barrier_start use different names, so
 * that their barriers never match, even without a call number. */
static int start_barrier(int set, bool is_numbered, uint64_t call,
                         struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_BARRIER, .word = "Barrier", .set = set, .call = call};
    struct hvd_job *job = hvd_job_enter(err);
    int64_t number = 0;
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    /* Check before counting: other ranks may have made a correct call. */
    status = hvd_start_check(job, &start, err);
    if (status == 0) {
        number = hvd_sets_number(hvd_job_sets(job), set,
                                 is_numbered ? HVD_UNNAMED_BARRIER_CALLS
                                             : HVD_UNNAMED_BARRIERS);
    }
    hvd_job_exit();
    return status != 0
               ? status
               : hvd_start_without_tensor(&start,
                                          is_numbered ? "call.barrier" : "barrier",
                                          number, request, err);
}

HVD_EXPORT int hvd_barrier_start(int set, struct hvd_request **request,
                                 struct hvd_error *err)
{
    return start_barrier(set, false, 0, request, err);
}

HVD_EXPORT int hvd_barrier_call_start(int set, uint64_t call,
                                      struct hvd_request **request, struct hvd_error *err)
{
    return start_barrier(set, true, call, request, err);
}
