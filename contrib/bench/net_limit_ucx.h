/* SPDX-License-Identifier: Apache-2.0 */
/* The allreduce of two nodes with nothing but UCX active messages: what the network gives. */
#ifndef HVD_BENCH_NET_LIMIT_UCX_H
#define HVD_BENCH_NET_LIMIT_UCX_H

#include <stddef.h>

/* Opens UCX, and its address for the other; valid until the end of the process. */
void limit_open(const void **address, size_t *bytes);

/* Connects to the other's address; fragment: bytes of a message, a multiple of 4. */
void limit_connect(const void *address, size_t fragment);

/* out[i] = in[i] of both; calls match on both sides. */
void limit_allreduce(const float *in, float *out, size_t count);

#endif
