/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's part in a random collective, and the check of its result. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/soak/soak.h"
#include "tests/collectives/test_case.h"

/* The tensors that this rank submits, and their description. */
struct part {
    struct soak_call call;
    struct hvd_tensor tensors[SOAK_TENSORS];
    int64_t shapes[SOAK_TENSORS][2];
    char names[SOAK_TENSORS][48];
    int32_t splits[SOAK_RANKS];
};

static int64_t input_rows(const struct part *part, const struct soak_set *set, int tensor)
{
    int64_t rows = 0;

    if (part->call.kind != SOAK_ALLTOALL) {
        return soak_rows(&part->call, tensor, set->index);
    }
    for (int to = 0; to < set->count; to++) {
        rows += soak_split(&part->call, set->index, to);
    }
    return rows;
}

/* Returns the number of rows of the output that the caller allocates; 0: the library
 * allocates it. */
static int64_t output_rows(const struct soak_call *call, const struct soak_set *set,
                           int tensor)
{
    int64_t rows = call->rows[tensor];

    switch (call->kind) {
    case SOAK_ALLGATHER:
    case SOAK_ALLTOALL:
        return 0;
    case SOAK_REDUCESCATTER:
        return rows / set->count + (set->index < rows % set->count ? 1 : 0);
    default:
        return rows;
    }
}

static bool is_in_place(const struct soak_call *call, const struct soak_set *set)
{
    return call->seed % 2 == 0 &&
           (call->kind == SOAK_ALLREDUCE || call->kind == SOAK_ADASUM ||
            (call->kind == SOAK_BROADCAST && call->root == set->index));
}

static void make_tensor(struct part *part, struct soak_flight *flight, int i)
{
    const struct soak_call *call = &part->call;
    const struct soak_set *set = &flight->set;
    int64_t rows = input_rows(part, set, i);
    bool is_single = call->tensors == 1;

    snprintf(part->names[i], sizeof(part->names[i]), is_single ? "%s" : "%s_%d",
             call->name, i);
    part->shapes[i][0] = rows;
    part->shapes[i][1] = call->row;
    flight->inputs[i] = case_array(call->dtype, rows * call->row);
    soak_fill(call, i, set->index, flight->inputs[i], rows * call->row);
    flight->outputs[i] =
        is_in_place(call, set)
            ? flight->inputs[i]
            : case_array(call->dtype, output_rows(call, set, i) * call->row);
    part->tensors[i] = (struct hvd_tensor){.name = part->names[i],
                                           .input = flight->inputs[i],
                                           .output = flight->outputs[i],
                                           .shape = part->shapes[i],
                                           .ndim = 2,
                                           .dtype = call->dtype,
                                           .device = HVD_DEVICE_CPU};
}

static int start_part(struct part *part, struct soak_flight *flight,
                      struct hvd_error *err)
{
    const struct soak_call *call = &part->call;
    const struct hvd_tensor *tensors = part->tensors;
    const struct soak_set *set = &flight->set;

    switch (call->kind) {
    case SOAK_ALLGATHER:
        return hvd_allgather_start(tensors, call->tensors, set->id, &flight->request,
                                   err);
    case SOAK_BROADCAST:
        return hvd_broadcast_start(tensors, set->ranks[call->root], set->id,
                                   &flight->request, err);
    case SOAK_ALLTOALL:
        return hvd_alltoall_start(tensors, part->splits, set->count, set->id,
                                  &flight->request, err);
    case SOAK_REDUCESCATTER:
        return hvd_reducescatter_start(tensors, call->tensors, call->op, call->prescale,
                                       call->postscale, set->id, &flight->request, err);
    case SOAK_BARRIER:
        return hvd_barrier_start(set->id, &flight->request, err);
    default:
        return hvd_allreduce_start(tensors, call->tensors, call->op, call->prescale,
                                   call->postscale, set->id, &flight->request, err);
    }
}

void soak_start(struct soak *soak, const struct soak_call *call,
                struct soak_flight *flight)
{
    struct part part = {.call = *call};
    struct hvd_error err = {0};
    int status;

    *flight = (struct soak_flight){.call = call, .set = soak->sets[call->slot]};
    if (flight->set.index < 0) {
        return;
    }
    if (call->fault != SOAK_NO_FAULT && flight->set.index == call->culprit) {
        part.call = soak_spoilt(call, flight->set.count);
    }
    for (int i = 0; i < flight->set.count; i++) {
        part.splits[i] = soak_split(&part.call, flight->set.index, i);
    }
    for (int i = 0; i < call->tensors; i++) {
        make_tensor(&part, flight, i);
    }
    status = start_part(&part, flight, &err);
    if (status != 0) {
        soak_fail(soak, "%s cannot start: %d %s", soak_describe(call), status, err.text);
    }
    soak->calls++;
    soak->faults += call->fault != SOAK_NO_FAULT ? 1 : 0;
}

void soak_glance(struct soak *soak, struct soak_flight *flight)
{
    if (flight->request == NULL) {
        return;
    }
    if (soak_chance(&soak->own, 2)) {
        hvd_test(flight->request, NULL);
    } else {
        hvd_wait_for(flight->request, (int)soak_pick(&soak->own, 3), NULL);
    }
}

int soak_end(struct soak *soak, struct hvd_request *request, struct hvd_error *err)
{
    uint32_t way = soak_pick(&soak->own, 8);
    int status = HVD_INPROGRESS;

    if (way > 1) {
        return hvd_wait(request, err);
    }
    while (status == HVD_INPROGRESS) {
        status = way == 0 ? hvd_test(request, err) : hvd_wait_for(request, 2, err);
        if (way == 0 && status == HVD_INPROGRESS) {
            usleep(200);
        }
    }
    return status;
}

/* --- results --- */

static bool is_reduced(const struct soak_flight *flight, int tensor)
{
    const struct soak_call *call = flight->call;
    const struct soak_set *set = &flight->set;
    int64_t rows = call->rows[tensor], begin = 0;

    if (call->kind == SOAK_REDUCESCATTER) {
        int64_t more = rows % set->count;

        begin =
            set->index * (rows / set->count) + (set->index < more ? set->index : more);
    }
    return soak_holds(call, tensor, soak_reduced, set->count, flight->outputs[tensor],
                      begin * call->row, output_rows(call, set, tensor) * call->row);
}

static bool is_gathered(const struct soak_flight *flight, int tensor)
{
    const struct soak_call *call = flight->call;
    int64_t rows = -1, at = 0, bytes = call->row * (int64_t)hvd_dtype_bytes(call->dtype);
    void *data = NULL;
    bool good = hvd_request_take(flight->request, tensor, &data, &rows) == 0;

    for (int from = 0; good && from < flight->set.count; from++) {
        int64_t count = soak_rows(call, tensor, from);

        good = at + count <= rows &&
               soak_holds(call, tensor, soak_value, from, (char *)data + at * bytes, 0,
                          count * call->row);
        at += count;
    }
    hvd_free(data);
    return good && at == rows;
}

/* Returns the number of rows that `from` sends to the ranks before this one. */
static int64_t rows_before(const struct soak_flight *flight, int from)
{
    int64_t rows = 0;

    for (int to = 0; to < flight->set.index; to++) {
        rows += soak_split(flight->call, from, to);
    }
    return rows;
}

static bool is_exchanged(const struct soak_flight *flight)
{
    const struct soak_call *call = flight->call;
    int64_t rows = -1, at = 0, bytes = call->row * (int64_t)hvd_dtype_bytes(call->dtype);
    int32_t received[SOAK_RANKS] = {0};
    void *data = NULL;
    bool good = hvd_request_take(flight->request, 0, &data, &rows) == 0 &&
                hvd_request_splits(flight->request, received) == 0;

    for (int from = 0; good && from < flight->set.count; from++) {
        int32_t count = soak_split(call, from, flight->set.index);

        good = received[from] == count && at + count <= rows &&
               soak_holds(call, 0, soak_value, from, (char *)data + at * bytes,
                          rows_before(flight, from) * call->row, count * call->row);
        at += count;
    }
    hvd_free(data);
    return good && at == rows;
}

static bool is_right(const struct soak_flight *flight, int tensor)
{
    const struct soak_call *call = flight->call;

    switch (call->kind) {
    case SOAK_ALLGATHER:
        return is_gathered(flight, tensor);
    case SOAK_ALLTOALL:
        return is_exchanged(flight);
    case SOAK_BROADCAST:
        return soak_holds(call, 0, soak_value, call->root, flight->outputs[0], 0,
                          call->rows[0] * call->row);
    case SOAK_BARRIER:
        return true;
    default:
        return is_reduced(flight, tensor);
    }
}

static void check(const struct soak *soak, const struct soak_flight *flight, int status,
                  const struct hvd_error *err)
{
    const struct soak_call *call = flight->call;
    const char *text = call->fault != SOAK_NO_FAULT ? soak_fault_text(call) : "";
    int expected = call->fault != SOAK_NO_FAULT ? HVD_ERR_MISMATCH : 0;

    if (status != expected || strncmp(err->text, text, strlen(text)) != 0) {
        soak_fail(soak, "%s: ended with %d \"%s\", expected %d \"%s\"",
                  soak_describe(call), status, err->text, expected, text);
    }
    for (int i = 0; status == 0 && i < call->tensors; i++) {
        if (!is_right(flight, i)) {
            soak_fail(soak, "%s: tensor %d is wrong", soak_describe(call), i);
        }
    }
}

void soak_finish(struct soak *soak, struct soak_flight *flight)
{
    struct hvd_error err = {0};

    if (flight->request == NULL) {
        return;
    }
    check(soak, flight, soak_end(soak, flight->request, &err), &err);
    hvd_request_free(flight->request);
    for (int i = 0; i < flight->call->tensors; i++) {
        free(flight->outputs[i] == flight->inputs[i] ? NULL : flight->outputs[i]);
        free(flight->inputs[i]);
    }
    *flight = (struct soak_flight){0};
}
