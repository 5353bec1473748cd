/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that all ranks mean the same by a tensor: Horovod's checks, with Horovod's
 * messages.
 *
 * The order of the checks is part of the interface, because scripts and their tests match
 * the first message. One of Horovod's checks is left out: that the fusion buffer can hold
 * the input of a scaled reducescatter. There is no fusion buffer here, and any size
 * works. */
#include "collectives/agreement/validate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void hvd_shape_format(const int64_t *shape, int ndim, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");

    for (int i = 0; i < ndim && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", shape[i]);
    }
    if (used < bytes) {
        snprintf(text + used, bytes - used, "]");
    }
}

static bool needs_same_shape(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM ||
           kind == HVD_KIND_BROADCAST || kind == HVD_KIND_REDUCESCATTER ||
           kind == HVD_KIND_REDUCE || kind == HVD_KIND_SCATTER;
}

static bool is_reduction(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM ||
           kind == HVD_KIND_REDUCESCATTER || kind == HVD_KIND_REDUCE;
}

static bool same_shape(const struct hvd_descriptor *a, const struct hvd_descriptor *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])) == 0;
}

static int check_dtype(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                       struct hvd_error *err)
{
    if (a->dtype == b->dtype) {
        return 0;
    }
    return hvd_fail(
        err, HVD_ERR_MISMATCH,
        "Mismatched data types: One rank had type %s, but another rank had type "
        "%s.",
        hvd_dtype_name(a->dtype), hvd_dtype_name(b->dtype));
}

static int check_kind(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                      struct hvd_error *err)
{
    if (a->kind != b->kind) {
        return hvd_fail(
            err, HVD_ERR_MISMATCH,
            "Mismatched operations: One rank did an %s, but another rank did an "
            "%s.",
            hvd_kind_name(a->kind), hvd_kind_name(b->kind));
    }
    return 0;
}

static int check_shape(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                       struct hvd_error *err)
{
    char one[160], other[160];

    if (!needs_same_shape(a->kind) || same_shape(a, b)) {
        return 0;
    }
    hvd_shape_format(a->shape, a->ndim, one, sizeof(one));
    hvd_shape_format(b->shape, b->ndim, other, sizeof(other));
    return hvd_fail(
        err, HVD_ERR_MISMATCH,
        "Mismatched %s tensor shapes: One rank sent a tensor of shape %s, but "
        "another rank sent a tensor of shape %s.",
        hvd_kind_name(a->kind), one, other);
}

static int check_scale(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                       struct hvd_error *err)
{
    if (!is_reduction(a->kind) ||
        (a->prescale == b->prescale && a->postscale == b->postscale)) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Mismatched prescale and/or postscale factors: One rank sent factors "
                    "(%g, %g), but another rank sent factors (%g, %g).",
                    a->prescale, a->postscale, b->prescale, b->postscale);
}

static int check_op(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                    struct hvd_error *err)
{
    if (!is_reduction(a->kind) || a->op == b->op) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Mismatched reduction operation: One rank sent reduction op %d, but "
                    "another rank sent reduction op %d.",
                    a->op, b->op);
}

static enum hvd_dtype wire_of(const struct hvd_descriptor *descriptor)
{
    return descriptor->wire != 0 ? (enum hvd_dtype)descriptor->wire : descriptor->dtype;
}

/* Horovod has no wire types, and no such check. */
static int check_wire(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                      struct hvd_error *err)
{
    if (a->wire == b->wire) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Mismatched wire types: One rank sends tensor %.100s as %s, but "
                    "another rank sends it as %s. All ranks must use the same wire type.",
                    a->name, hvd_dtype_name(wire_of(a)), hvd_dtype_name(wire_of(b)));
}

static int check_join(const struct hvd_descriptor *a, struct hvd_error *err)
{
    switch (a->kind) {
    case HVD_KIND_ALLGATHER:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Allgather is not supported with Join at this time. Specify "
                        "sparse_to_dense=True if using DistributedOptimizer");
    case HVD_KIND_ALLTOALL:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Alltoall is not supported with Join at this time.");
    case HVD_KIND_REDUCESCATTER:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Reducescatter is not supported with Join at this time.");
    case HVD_KIND_BROADCAST:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Broadcast is not supported with Join at this time.");
    case HVD_KIND_REDUCE:
    case HVD_KIND_GATHER:
    case HVD_KIND_SCATTER:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "%s is not supported with Join: a rank that has joined takes no "
                        "part in it.",
                        hvd_kind_name(a->kind));
    case HVD_KIND_SET_ADD:
    case HVD_KIND_SET_REMOVE:
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Process sets cannot be added or removed after a rank has "
                        "joined and before all have.");
    default:
        return 0;
    }
}

/* Rejects ops other than sums: zeros of a rank that has joined leave a sum as it is, but
 * change a minimum or a product. */
static int check_join_op(const struct hvd_descriptor *a, struct hvd_error *err)
{
    if (a->kind != HVD_KIND_ALLREDUCE || a->op < HVD_MIN) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Allreduce with op %s is not supported with Join: zeros of a rank "
                    "that has joined would change the result. Use Sum or Average.",
                    hvd_op_name(a->op));
}

static int check_not_scalar(const struct hvd_descriptor *a,
                            const struct hvd_descriptor *b, struct hvd_error *err)
{
    bool has_rows = hvd_kind_has_rows(a->kind) || a->kind == HVD_KIND_ALLTOALL ||
                    a->kind == HVD_KIND_REDUCESCATTER || a->kind == HVD_KIND_SCATTER;

    (void)b;
    if (!has_rows || a->ndim > 0) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Process-set rank zero tried to %s a rank-zero tensor.",
                    hvd_kind_name(a->kind));
}

static int check_other_dims(const struct hvd_descriptor *a,
                            const struct hvd_descriptor *b, struct hvd_error *err)
{
    if (!hvd_kind_has_rows(a->kind) && a->kind != HVD_KIND_ALLTOALL) {
        return 0;
    }
    if (a->ndim != b->ndim) {
        return hvd_fail(
            err, HVD_ERR_MISMATCH,
            "Mismatched %s tensor shapes: One rank sent a tensor of rank %d, but "
            "another rank sent a tensor of rank %d.",
            hvd_kind_name(a->kind), a->ndim, b->ndim);
    }
    for (int i = 1; i < a->ndim; i++) {
        if (a->shape[i] != b->shape[i]) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "Mismatched %s tensor shapes: One rank sent a tensor with "
                            "dimension %d equal to %" PRId64 ", but another rank sent a "
                            "tensor with dimension %d equal to %" PRId64 ".",
                            hvd_kind_name(a->kind), i, a->shape[i], i, b->shape[i]);
        }
    }
    return 0;
}

static int check_root(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                      struct hvd_error *err)
{
    if (!hvd_kind_has_root(a->kind) || a->root == b->root) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "Mismatched %s root ranks: One rank specified root rank %d, but "
                    "another rank specified root rank %d.",
                    hvd_kind_name(a->kind), a->root, b->root);
}

/* Compares notes. NULL, in a descriptor of this rank, equals the empty note of a received
 * descriptor. */
static bool is_same_note(const struct hvd_descriptor *a, const struct hvd_descriptor *b)
{
    return strcmp(a->note != NULL ? a->note : "", b->note != NULL ? b->note : "") == 0;
}

static int check_note(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                      struct hvd_error *err)
{
    bool removes = a->kind == HVD_KIND_SET_REMOVE;

    if (removes ? a->root == b->root : is_same_note(a, b)) {
        return 0;
    }
    if (removes) {
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "Mismatched process sets: One rank removes process set %d, but "
                        "another rank removes process set %d.",
                        a->root, b->root);
    }
    return hvd_fail(
        err, HVD_ERR_MISMATCH,
        "Mismatched process sets: One rank adds the ranks [%.150s], but another "
        "rank adds the ranks [%.150s].",
        a->note, b->note);
}

static int check_device(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                        struct hvd_error *err)
{
    bool a_on_cpu = a->device == HVD_DEVICE_CPU;
    bool b_on_cpu = b->device == HVD_DEVICE_CPU;

    if (a_on_cpu == b_on_cpu) {
        return 0;
    }
    return hvd_fail(
        err, HVD_ERR_MISMATCH,
        "Mismatched %s CPU/GPU device selection: One rank specified device %s, "
        "but another rank specified device %s.",
        hvd_kind_name(a->kind), a_on_cpu ? "CPU" : "GPU", b_on_cpu ? "CPU" : "GPU");
}

/* --- the ranks that differ, appended to Horovod's sentence --- */

/* Writes the value of one rank that a check compares. */
typedef void write_value(const struct hvd_descriptor *descriptor, char *text,
                         size_t bytes);

static void write_dtype(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", hvd_dtype_name(descriptor->dtype));
}

static void write_kind(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", hvd_kind_name(descriptor->kind));
}

static void write_shape(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    hvd_shape_format(descriptor->shape, descriptor->ndim, text, bytes);
}

static void write_scale(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "factors (%g, %g)", descriptor->prescale,
             descriptor->postscale);
}

static void write_op(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "op=%s", hvd_op_name(descriptor->op));
}

static void write_wire(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "wire type %s", hvd_dtype_name(wire_of(descriptor)));
}

static void write_set(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    if (descriptor->kind == HVD_KIND_SET_REMOVE) {
        snprintf(text, bytes, "process set %d", descriptor->root);
    } else {
        snprintf(text, bytes, "ranks [%s]", descriptor->note);
    }
}

static void write_root(const struct hvd_descriptor *descriptor, char *text, size_t bytes)
{
    snprintf(text, bytes, "root rank %d", descriptor->root);
}

static void write_device(const struct hvd_descriptor *descriptor, char *text,
                         size_t bytes)
{
    snprintf(text, bytes, "%s", descriptor->device == HVD_DEVICE_CPU ? "CPU" : "GPU");
}

struct check {
    int (*fails)(const struct hvd_descriptor *a, const struct hvd_descriptor *b,
                 struct hvd_error *err);
    write_value *write;
};

static const struct hvd_descriptor *
description_at(const struct hvd_ready_tensor *ready_tensor, int i)
{
    return ready_tensor->cached == NULL ? ready_tensor->descriptions[i]
           : i == 0                     ? ready_tensor->cached->descriptor
                                        : ready_tensor->descriptions[i - 1];
}

/* Returns the rank of a description: the first rank that sent it. */
static int rank_of(const struct hvd_ready_tensor *ready_tensor, int i)
{
    return ready_tensor->cached != NULL && i == 0 ? ready_tensor->cached_rank
                                                  : description_at(ready_tensor, i)->rank;
}

/* Appends the values that ranks have, of descriptions 0 and i; i may be 0. */
static void add_ranks(const struct check *check,
                      const struct hvd_ready_tensor *ready_tensor, int i,
                      struct hvd_error *err)
{
    const struct hvd_descriptor *first = description_at(ready_tensor, 0);
    size_t used = err != NULL ? strlen(err->text) : 0;
    char one[100], other[100];

    if (err == NULL || used >= sizeof(err->text)) {
        return;
    }
    check->write(first, one, sizeof(one));
    check->write(description_at(ready_tensor, i), other, sizeof(other));
    if (i == 0) {
        snprintf(err->text + used, sizeof(err->text) - used,
                 " Tensor %.100s: rank %d has %s.", first->name, rank_of(ready_tensor, 0),
                 one);
    } else {
        snprintf(err->text + used, sizeof(err->text) - used,
                 " Tensor %.100s: rank %d has %s, rank %d has %s.", first->name,
                 rank_of(ready_tensor, 0), one, rank_of(ready_tensor, i), other);
    }
}

static int check_all(const struct check *check,
                     const struct hvd_ready_tensor *ready_tensor, struct hvd_error *err)
{
    const struct hvd_descriptor *first = description_at(ready_tensor, 0);
    int count = ready_tensor->described + (ready_tensor->cached != NULL ? 1 : 0);
    int status = check->fails(first, first, err), i = 0;

    while (status == 0 && ++i < count) {
        status = check->fails(first, description_at(ready_tensor, i), err);
    }
    if (status != 0) {
        add_ranks(check, ready_tensor, i, err);
    }
    return status;
}

/* For a tensor that a joined rank lacks and on which the other ranks agree: checks that
 * its kind and op allow that. */
static int check_beside_join(const struct hvd_ready_tensor *ready_tensor,
                             struct hvd_error *err)
{
    static const struct check by_kind = {.write = write_kind},
                              by_op = {.write = write_op};
    int status = check_join(description_at(ready_tensor, 0), err);

    if (status != 0) {
        add_ranks(&by_kind, ready_tensor, 0, err);
        return status;
    }
    status = check_join_op(description_at(ready_tensor, 0), err);
    if (status != 0) {
        add_ranks(&by_op, ready_tensor, 0, err);
    }
    return status;
}

int hvd_validate(const struct hvd_ready_tensor *ready_tensor, struct hvd_error *err)
{
    static const struct check before_join[] = {
        {check_dtype, write_dtype}, {check_kind, write_kind}, {check_shape, write_shape},
        {check_scale, write_scale}, {check_op, write_op},     {check_wire, write_wire},
        {check_note, write_set}};
    static const struct check after_join[] = {{check_not_scalar, write_shape},
                                              {check_other_dims, write_shape},
                                              {check_root, write_root},
                                              {check_device, write_device}};
    int status = 0;

    for (size_t i = 0; status == 0 && i < sizeof(before_join) / sizeof(before_join[0]);
         i++) {
        status = check_all(&before_join[i], ready_tensor, err);
    }
    if (status == 0 && ready_tensor->is_partial) {
        status = check_beside_join(ready_tensor, err);
    }
    for (size_t i = 0; status == 0 && i < sizeof(after_join) / sizeof(after_join[0]);
         i++) {
        status = check_all(&after_join[i], ready_tensor, err);
    }
    return status;
}

int hvd_validate_pair(struct hvd_cached_tensor *cached,
                      const struct hvd_descriptor *other, struct hvd_error *err)
{
    struct hvd_descriptor *others[] = {(struct hvd_descriptor *)other};
    const struct hvd_ready_tensor both = {
        .cached = cached, .descriptions = others, .described = 1};

    return hvd_validate(&both, err);
}
