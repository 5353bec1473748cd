/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and buffers of one line of the table. */
#include "contrib/bench/hvd_bench/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/bench/hvd_bench/options.h"
#include "gpu_binding/base/error.h"

enum {
    PAGE = 4096,
    LINE = 64
};

static bool is_divided(enum bench_collective collective)
{
    return collective == BENCH_ALLGATHER || collective == BENCH_ALLTOALL ||
           collective == BENCH_REDUCESCATTER || collective == BENCH_GATHER ||
           collective == BENCH_SCATTER;
}

/* A rank puts in as many elements as all ranks get. */
static bool is_given_to_all(enum bench_collective collective)
{
    return collective == BENCH_ALLTOALL || collective == BENCH_REDUCESCATTER ||
           collective == BENCH_SCATTER;
}

/* One tensor, such that the larger of input and output is about the wanted size. */
static void choose_count(struct bench_work *work)
{
    int64_t share = work->wanted / (int64_t)work->element;

    if (is_divided(work->collective)) {
        share /= work->size;
    }
    share = share < 1 ? 1 : share;
    work->tensors = 1;
    work->counts[0] = share;
    if (is_given_to_all(work->collective)) {
        work->counts[0] = share * work->size;
    }
}

/* The gradients of a model in the order in which backward makes them: last layer first. */
static int choose_list(struct bench_work *work, struct hvd_error *err)
{
    struct bench_gradients gradients;

    if (bench_gradients_find(work->list, &gradients) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "no list %s", work->list);
    }
    work->tensors = gradients.count;
    for (int i = 0; i < gradients.count; i++) {
        work->counts[i] = gradients.elements[gradients.count - 1 - i];
    }
    return 0;
}

static void place_one(struct bench_work *work)
{
    int64_t count = work->counts[0];

    work->input_count = work->output_count = count;
    if (work->collective == BENCH_REDUCESCATTER || work->collective == BENCH_SCATTER) {
        work->output_count = count / work->size;
    }
    if (work->collective == BENCH_ALLGATHER || work->collective == BENCH_GATHER) {
        work->output_count = count * work->size;
    }
    work->bytes =
        (int64_t)work->element *
        (work->input_count > work->output_count ? work->input_count : work->output_count);
}

static void place_list(struct bench_work *work)
{
    int64_t element = (int64_t)work->element, line = LINE / element;

    work->bytes = work->input_count = 0;
    for (int i = 0; i < work->tensors; i++) {
        work->places[i] = work->input_count;
        work->input_count += (work->counts[i] + line - 1) / line * line;
        work->bytes += work->counts[i] * element;
    }
    work->output_count = work->input_count;
}

/* Touched, by this rank, so that the first timed call does not pay for it. */
static char *make_buffer(const struct bench_work *work, int64_t count)
{
    size_t bytes = (size_t)count * work->element;
    char *buffer = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);

    if (buffer != NULL) {
        memset(buffer, 0, (bytes + PAGE - 1) / PAGE * PAGE);
    }
    return buffer;
}

int bench_work_init(struct bench_work *work, struct hvd_error *err)
{
    int status = 0;

    work->input = work->output = NULL;
    work->places[0] = 0;
    work->element = hvd_dtype_bytes(work->dtype);
    if (work->collective == BENCH_BARRIER) {
        work->tensors = 0;
        work->bytes = work->input_count = work->output_count = 0;
        return 0;
    }
    if (work->list != NULL) {
        status = choose_list(work, err);
    } else if (!work->has_counts) {
        choose_count(work);
    }
    if (status < 0) {
        return status;
    }
    if (work->tensors == 1) {
        place_one(work);
    } else {
        place_list(work);
    }
    work->input = make_buffer(work, work->input_count);
    work->output =
        work->is_in_place ? work->input : make_buffer(work, work->output_count);
    if (work->input == NULL || work->output == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for buffers of %lld bytes",
                        (long long)work->bytes);
    }
    return 0;
}

void bench_work_finish(struct bench_work *work)
{
    if (work->output != work->input) {
        free(work->output);
    }
    free(work->input);
    work->input = work->output = NULL;
}

const char *bench_work_title(const struct bench_work *work, char *text, size_t room)
{
    bool has_op = bench_collective_reduces(work->collective);

    if (work->collective == BENCH_BARRIER) {
        snprintf(text, room, "barrier");
    } else {
        snprintf(text, room, "%s %s%s%s%s%s%s", bench_collective_name(work->collective),
                 hvd_dtype_name(work->dtype), has_op ? " " : "",
                 has_op ? bench_op_name(work->op) : "",
                 work->wire != 0 ? ", hvd sends " : "",
                 work->wire != 0 ? hvd_dtype_name((enum hvd_dtype)work->wire) : "",
                 work->is_in_place ? ", in place" : "");
    }
    return text;
}
