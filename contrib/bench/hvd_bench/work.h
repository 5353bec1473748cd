/* SPDX-License-Identifier: Apache-2.0 */
/* One line of the table: the work that all contenders do on the same buffers, and the
 * check of its result.
 *
 * A value depends on the rank and on the place in the buffer, so that data that came from
 * the wrong rank or landed in the wrong place is found. */
#ifndef HVD_BENCH_WORK_H
#define HVD_BENCH_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"
#include "contrib/bench/hvd_bench/figures.h"

struct bench_work {
    /* Set by the caller. */
    enum bench_collective collective;
    enum hvd_dtype dtype;
    enum hvd_op op; /* allreduce, reducescatter, reduce */
    int64_t wanted; /* bytes */
    int rank;
    int size;
    /* Set by init. */
    size_t element; /* bytes of one */
    int64_t bytes; /* in nccl-tests' sense, 0 of a barrier */
    int64_t input_count; /* of the buffers, in elements */
    int64_t output_count;
    char *input, *output; /* page-aligned and touched */
};

/* Makes the buffers. Rounds the size down to whole elements of each rank, at least one.
 * Returns 0 or a failure; end with finish in any case. */
int bench_work_init(struct bench_work *work, struct hvd_error *err);
void bench_work_finish(struct bench_work *work); /* zeroed is fine */

/* Before a run that is to be checked: sets the input, and an output that no result
 * equals. */
void bench_work_fill(struct bench_work *work);

/* Compares output, laid out as the work's, with the result; HVD_ERR_MISMATCH names the
 * first wrong element and the contender `who` that made it. */
int bench_work_check(const struct bench_work *work, const void *output, const char *who,
                     struct hvd_error *err);

/* "allreduce float32 sum", for messages. Returns text. */
const char *bench_work_title(const struct bench_work *work, char *text, size_t room);

#endif
