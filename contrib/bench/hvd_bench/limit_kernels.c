/* SPDX-License-Identifier: Apache-2.0 */
/* Adds in blocks that stay in the first cache, so that one loop serves any number of inputs and
 * all destinations. The widest vectors of the machine are chosen when it runs. */
#include "contrib/bench/hvd_bench/limit_kernels.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "gpu_binding/base/attr.h"

enum {
    BLOCK = 1024 /* floats */
};

typedef void (*adder)(const float *const *in, int inputs, int64_t begin, int64_t count,
                      float *restrict out);

static HVD_ALWAYS_INLINE void add(const float *const *in, int inputs, int64_t begin,
                                  int64_t count, float *restrict out)
{
    const float *a = in[0] + begin, *b = inputs > 1 ? in[1] + begin : NULL;

    if (b == NULL) {
        memcpy(out, a, (size_t)count * sizeof(*out));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
    for (int input = 2; input < inputs; input++) {
        const float *next = in[input] + begin;

        for (int64_t i = 0; i < count; i++) {
            out[i] += next[i];
        }
    }
}

static void add_plain(const float *const *in, int inputs, int64_t begin, int64_t count,
                      float *restrict out)
{
    add(in, inputs, begin, count, out);
}

#ifdef __x86_64__
HVD_TARGET_BEGIN("avx2")
static void add_avx2(const float *const *in, int inputs, int64_t begin, int64_t count,
                     float *restrict out)
{
    add(in, inputs, begin, count, out);
}
HVD_TARGET_END

HVD_TARGET_BEGIN("avx512f")
static void add_avx512(const float *const *in, int inputs, int64_t begin, int64_t count,
                       float *restrict out)
{
    add(in, inputs, begin, count, out);
}
HVD_TARGET_END

static adder choose(void)
{
    return __builtin_cpu_supports("avx512f") ? add_avx512
           : __builtin_cpu_supports("avx2")  ? add_avx2
                                             : add_plain;
}

/* Whole cache lines go past the caches, the edges do not. */
static void copy_streaming(float *out, const float *in, int64_t count)
{
    int64_t head = (int64_t)((64 - (uintptr_t)out % 64) % 64 / sizeof(*out));

    head = head > count ? count : head;
    memcpy(out, in, (size_t)head * sizeof(*out));
    for (; head + 16 <= count; head += 16) {
        for (int64_t i = head; i < head + 16; i += 4) {
            _mm_stream_ps(out + i, _mm_loadu_ps(in + i));
        }
    }
    memcpy(out + head, in + head, (size_t)(count - head) * sizeof(*out));
}

void bench_kernel_fence(void)
{
    _mm_sfence();
}
#else
static adder choose(void)
{
    return add_plain;
}

static void copy_streaming(float *out, const float *in, int64_t count)
{
    memcpy(out, in, (size_t)count * sizeof(*out));
}

void bench_kernel_fence(void)
{
}
#endif

void bench_kernel_copy(float *out, const float *in, int64_t count, bool streams)
{
    if (streams) {
        copy_streaming(out, in, count);
    } else {
        memcpy(out, in, (size_t)count * sizeof(*out));
    }
}

void bench_kernel_add(const struct bench_kernel_sum *sum, int64_t count)
{
    adder add_block = choose();
    float block[BLOCK];

    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        int64_t length = count - begin < BLOCK ? count - begin : BLOCK;
        float *to = sum->copy != NULL ? sum->copy + begin
                    : sum->streams    ? block
                                      : sum->out + begin;

        add_block(sum->in, sum->inputs, begin, length, to);
        if (to != sum->out + begin) {
            bench_kernel_copy(sum->out + begin, to, length, sum->streams);
        }
    }
}
