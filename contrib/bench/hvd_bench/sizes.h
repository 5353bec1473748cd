/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as users write them: 8, 64K, 1M:64M, 8:64M:8, and lists of these. Pure. */
#ifndef HVD_BENCH_SIZES_H
#define HVD_BENCH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    BENCH_MOST_SIZES = 256
};

struct bench_sizes {
    int count;
    int64_t bytes[BENCH_MOST_SIZES];
};

/* One size: a whole number above 0, then nothing, K, M or G (powers of 1024; a B or iB
 * behind changes nothing). Returns 0 or HVD_ERR_ARG with the text for the user. */
int bench_size_parse(const char *text, int64_t *bytes, struct hvd_error *err);

/* A list by commas of sizes and ranges MIN:MAX[:FACTOR], factor 2 where none is given; a
 * range ends with the last step that is not above MAX. */
int bench_sizes_parse(const char *text, struct bench_sizes *sizes, struct hvd_error *err);

#endif
