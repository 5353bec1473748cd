/* SPDX-License-Identifier: Apache-2.0 */
/* Many tensors of one size that hvd allreduces (float32, Sum) all at once. Ends the process with a
 * message when something fails: a benchmark has no use for the rest. */
#ifndef HVD_BENCH_BATCH_H
#define HVD_BENCH_BATCH_H

#include <stdint.h>

#include "collectives/hvd.h"

struct batch {
    int count;
    int64_t elements; /* of each tensor */
    float *in, *out; /* one tensor after the other */
    char (*names)[24]; /* prefix and number */
    struct hvd_request **requests;
};

/* Tensors called PREFIX.0, PREFIX.1, ...; after hvd_init. The input is this rank's number plus
 * one. */
void batch_init(struct batch *batch, const char *prefix, int count, int64_t elements);
void batch_finish(struct batch *batch);

/* One of them: begins, and waits for its end. */
void batch_submit(struct batch *batch, int index);
void batch_wait(struct batch *batch, int index);

/* Submits them one by one, then waits for each. Returns the seconds until all were submitted. */
double batch_run(struct batch *batch);

/* Ends the process if `out` is not the sum over all ranks; clears it. */
void batch_check(struct batch *batch, const char *who);

double seconds_now(void);

#endif
