/* SPDX-License-Identifier: Apache-2.0 */
/* One line of the table: what all contenders run, on the same buffers, and how to see that the
 * result is right.
 *
 * The tensors of a list lie one after the other in the buffers, each on a cache line of its own;
 * who looks at bytes only may take the whole buffer for one tensor. A value depends on the rank and on the place in the buffer, so that what has come from
 * elsewhere is wrong. */
#ifndef HVD_BENCH_WORK_H
#define HVD_BENCH_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"
#include "contrib/bench/hvd_bench/figures.h"
#include "contrib/bench/hvd_bench/gradient_list.h"

struct bench_work {
    /* Set by the caller. */
    enum bench_collective collective;
    enum hvd_dtype dtype;
    enum hvd_op op; /* allreduce, reducescatter, reduce */
    int wire; /* hvd_tensor.wire; others than hvd take no notice */
    bool is_in_place;
    const char *list; /* NULL: one tensor of about `wanted` bytes */
    int64_t wanted;
    bool has_counts; /* tensors and counts are set, too, and neither list nor wanted */
    int rank;
    int size;
    /* Set by init. */
    size_t element; /* bytes of one */
    int tensors;
    int64_t counts[BENCH_MOST_TENSORS]; /* elements that a rank puts in */
    int64_t places[BENCH_MOST_TENSORS]; /* where they begin in the buffers, in elements */
    int64_t bytes; /* in nccl-tests' sense, of all tensors */
    int64_t input_count; /* of the buffers, in elements */
    int64_t output_count;
    char *input, *output; /* page-aligned and touched; the same when in place */
};

/* Makes the buffers. Rounds the size down to whole elements of each rank, at least one. Returns 0
 * or a failure; end with finish in any case. */
int bench_work_init(struct bench_work *work, struct hvd_error *err);
void bench_work_finish(struct bench_work *work); /* zeroed is fine */

/* Before a run that is to be checked: input as it should be, output as it should not. */
void bench_work_fill(struct bench_work *work);

/* Whether output, laid out as the work's, is the result; else HVD_ERR_MISMATCH with the first
 * element that is wrong and who made it. */
int bench_work_check(const struct bench_work *work, const void *output, const char *who,
                     struct hvd_error *err);

/* "allreduce float32 sum", for messages. Returns text. */
const char *bench_work_title(const struct bench_work *work, char *text, size_t room);

#endif
