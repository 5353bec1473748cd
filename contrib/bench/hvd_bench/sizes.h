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

/* Parses one size: a whole number above 0, with or without a suffix K, M or G (powers of
 * 1024), which B or iB may follow. Returns 0, or HVD_ERR_ARG with a text for the user. */
int bench_size_parse(const char *text, int64_t *bytes, struct hvd_error *err);

/* Parses a comma-separated list of sizes and ranges MIN:MAX[:FACTOR]. The default factor
 * is 2; a range ends with the last step that is not above MAX. */
int bench_sizes_parse(const char *text, struct bench_sizes *sizes, struct hvd_error *err);

#endif
