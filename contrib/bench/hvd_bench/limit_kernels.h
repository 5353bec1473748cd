/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of the limit. */
#ifndef HVD_BENCH_LIMIT_KERNELS_H
#define HVD_BENCH_LIMIT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out[i] = in[0][i] + in[1][i] + ..., in this order; also to copy when that is not NULL. streams:
 * out past the caches, in effect for others after bench_kernel_fence. */
struct bench_kernel_sum {
    const float *const *in;
    int inputs;
    float *out;
    float *copy;
    bool streams;
};
void bench_kernel_add(const struct bench_kernel_sum *sum, int64_t count);

void bench_kernel_copy(float *out, const float *in, int64_t count, bool streams);
void bench_kernel_fence(void);

#endif
