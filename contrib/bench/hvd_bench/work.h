/* SPDX-License-Identifier: Apache-2.0 */
/* One line of the table: the work that all contenders do on the same buffers, and the
 * check of the result.
 *
 * A value depends on the rank and on the position in the buffer, so that data from the
 * wrong rank or at the wrong position is found. */
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
    enum hvd_op op; /* of allreduce, reducescatter and reduce */
    int64_t wanted; /* size in bytes that the user asked for */
    int rank;
    int size;
    /* Set by init. */
    size_t element; /* bytes of an element */
    int64_t bytes; /* as nccl-tests counts them; 0 for a barrier */
    int64_t input_count; /* elements of the buffers */
    int64_t output_count;
    char *input, *output; /* page-aligned and touched */
};

/* Allocates the buffers. Rounds the size down to whole elements of each rank, at least
 * one. Returns 0 or a failure; call finish in any case. */
int bench_work_init(struct bench_work *work, struct hvd_error *err);
void bench_work_finish(struct bench_work *work); /* allowed on zeroed memory */

/* Sets the input before a run that is checked, and fills the output with bytes that are
 * no result. */
void bench_work_fill(struct bench_work *work);

/* Compares output, which is laid out as the work's, with the result. HVD_ERR_MISMATCH
 * names the first wrong element, and the contender `who`. */
int bench_work_check(const struct bench_work *work, const void *output, const char *who,
                     struct hvd_error *err);

/* Writes a title such as "allreduce float32 sum", for messages. Returns text. */
const char *bench_work_title(const struct bench_work *work, char *text, size_t room);

#endif
