/* SPDX-License-Identifier: Apache-2.0 */
/* Makes batches of one tensor for the teams test, and checks their results. */
#include "tests/collectives/run/team_calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tensor {
    struct hvd_entry entry; /* first, so that the batch's entry is the tensor */
    struct team_call call;
    int rank; /* rank in the job */
    int member; /* number of the rank in the set */
    void *input;
    void *output;
};

static struct tensor *tensor_of(const struct hvd_batch *batch)
{
    return (struct tensor *)batch->entries[0];
}

const struct team_call *team_call_of(const struct hvd_batch *batch)
{
    return &tensor_of(batch)->call;
}

/* Returns element i of a rank's input. Values are small, so that sums are exact. */
static int32_t value(const struct team_call *call, int rank, int64_t i)
{
    return (int32_t)((rank + 1) * 1000 + (int)((i * 7 + call->seed) % 991));
}

static int64_t gathered_rows(const struct team_call *call, int member)
{
    return (member * 3 + call->seed) % 5;
}

static int64_t sent_rows(const struct team_call *call, int from, int to)
{
    return (from + 2 * to + call->seed) % 4;
}

static int64_t input_rows(const struct team_call *call, int member)
{
    int64_t rows = 0;

    if (call->kind == HVD_KIND_ALLGATHER) {
        return gathered_rows(call, member);
    }
    if (call->kind != HVD_KIND_ALLTOALL) {
        return 1;
    }
    for (int to = 0; to < call->size; to++) {
        rows += sent_rows(call, member, to);
    }
    return rows;
}

static void fill_input(struct tensor *tensor, int64_t elements)
{
    const struct team_call *call = &tensor->call;

    for (int64_t i = 0; i < elements; i++) {
        int32_t number = value(call, tensor->rank, i);

        if (call->op == HVD_AVERAGE) {
            ((double *)tensor->input)[i] = number;
        } else {
            ((int32_t *)tensor->input)[i] = number;
        }
    }
}

static void fill_entry(struct tensor *tensor, int64_t rows)
{
    const struct team_call *call = &tensor->call;
    struct hvd_entry *entry = &tensor->entry;
    bool has_rows = call->kind == HVD_KIND_ALLGATHER || call->kind == HVD_KIND_ALLTOALL;

    entry->descriptor = (struct hvd_descriptor){
        .rank = tensor->rank,
        .set = call->set,
        .kind = call->kind,
        .dtype = call->op == HVD_AVERAGE ? HVD_FLOAT64 : HVD_INT32,
        .op = call->op,
        .root = call->root,
        .ndim = has_rows ? 2 : 1,
        .prescale = 1,
        .postscale = 1,
        .shape = {has_rows ? rows : call->count, call->count},
        .name = "tensor",
    };
    entry->input = tensor->input;
    entry->output = tensor->output;
    entry->is_zeros = tensor->rank == call->absent;
    if (entry->is_zeros && call->seed % 2 == 0) {
        entry->input = NULL;
        entry->output = NULL;
    }
    if (call->kind == HVD_KIND_ALLTOALL) {
        entry->splits = calloc((size_t)call->size, sizeof(entry->splits[0]));
        for (int to = 0; to < call->size; to++) {
            entry->splits[to] = (int32_t)sent_rows(call, tensor->member, to);
        }
    }
}

static struct tensor *tensor_create(const struct team_call *call, int rank)
{
    struct tensor *tensor = calloc(1, sizeof(*tensor));
    int64_t rows;
    size_t elements;

    tensor->call = *call;
    tensor->rank = rank;
    while (call->ranks[tensor->member] != rank) {
        tensor->member++;
    }
    rows = input_rows(call, tensor->member);
    elements = (size_t)(rows * call->count);
    tensor->input = calloc(elements + 1, sizeof(double));
    tensor->output = calloc((size_t)call->count + 1, sizeof(double));
    fill_input(tensor, (int64_t)elements);
    fill_entry(tensor, rows);
    return tensor;
}

struct hvd_batch *team_call_batch(const struct team_call *call, int rank)
{
    struct hvd_batch_header header = {
        .kind = call->kind,
        .set = call->set,
        .priority = call->priority,
        .max_block = 3,
        .count = 1,
        .row_count = call->kind == HVD_KIND_ALLGATHER ? call->size : 0,
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    for (int64_t i = 0; i < header.row_count; i++) {
        batch->rows[i] = gathered_rows(call, (int)i);
    }
    batch->entries[0] = &tensor_create(call, rank)->entry;
    return batch;
}

static bool is_reduced(const struct tensor *tensor, int64_t begin, int64_t count)
{
    const struct team_call *call = &tensor->call;

    for (int64_t i = 0; i < count; i++) {
        int32_t sum = 0;

        for (int m = 0; m < call->size; m++) {
            int rank = call->ranks[m];

            sum += rank == call->absent ? 0 : value(call, rank, begin + i);
        }
        if (call->op == HVD_AVERAGE
                ? fabs(((double *)tensor->output)[i] - (double)sum / call->size) > 1e-6
                : ((int32_t *)tensor->output)[i] != sum) {
            return false;
        }
    }
    return true;
}

/* Whether `output` begins with the elements [begin, begin + count) of a rank's input. */
static bool is_copied(const struct tensor *tensor, const int32_t *output, int rank,
                      int64_t begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (output[i] != value(&tensor->call, rank, begin + i)) {
            return false;
        }
    }
    return true;
}

static bool is_gathered(const struct tensor *tensor)
{
    const struct team_call *call = &tensor->call;
    const int32_t *output = tensor->entry.result;
    int64_t rows = 0;

    for (int m = 0; m < call->size; m++) {
        int64_t count = gathered_rows(call, m) * call->count;

        if (!is_copied(tensor, output, call->ranks[m], 0, count)) {
            return false;
        }
        output += count;
        rows += gathered_rows(call, m);
    }
    return tensor->entry.result_rows == rows;
}

static bool is_exchanged(const struct tensor *tensor)
{
    const struct team_call *call = &tensor->call;
    const int32_t *output = tensor->entry.result;

    for (int from = 0; from < call->size; from++) {
        int64_t begin = 0;
        int64_t rows = sent_rows(call, from, tensor->member);

        for (int to = 0; to < tensor->member; to++) {
            begin += sent_rows(call, from, to);
        }
        if (tensor->entry.received[from] != rows ||
            !is_copied(tensor, output, call->ranks[from], begin * call->count,
                       rows * call->count)) {
            return false;
        }
        output += rows * call->count;
    }
    return true;
}

static bool is_untouched(const struct tensor *tensor)
{
    for (int64_t i = 0; i < tensor->call.count; i++) {
        if (((double *)tensor->output)[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_right(const struct tensor *tensor)
{
    const struct team_call *call = &tensor->call;
    int64_t each = call->count / call->size, extra = call->count % call->size;
    int member = tensor->member;

    if (tensor->entry.is_zeros) {
        return is_untouched(tensor);
    }
    switch (call->kind) {
    case HVD_KIND_ALLREDUCE:
        return is_reduced(tensor, 0, call->count);
    case HVD_KIND_REDUCESCATTER:
        return is_reduced(tensor, member * each + (member < extra ? member : extra),
                          each + (member < extra ? 1 : 0));
    case HVD_KIND_BROADCAST:
        return is_copied(tensor, tensor->output, call->root, 0, call->count);
    case HVD_KIND_ALLGATHER:
        return is_gathered(tensor);
    case HVD_KIND_ALLTOALL:
        return is_exchanged(tensor);
    default:
        return true;
    }
}

bool team_call_end(struct hvd_batch *batch)
{
    struct tensor *tensor = tensor_of(batch);
    bool right = is_right(tensor);

    free(tensor->entry.splits);
    free(tensor->entry.received);
    free(tensor->entry.result);
    free(tensor->input);
    free(tensor->output);
    free(tensor);
    batch->entries[0] = NULL;
    hvd_batch_destroy(batch);
    return right;
}
