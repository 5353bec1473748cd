/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whole cache lines by stores that bypass the caches, and the ends by plain
 * stores. */
#include "collectives/reduce/stream.h"

#include <stdint.h>
#include <string.h>

#include "collectives/reduce/reduce_levels.h"
#include "gpu_binding/base/attr.h"

#ifdef __x86_64__

#include <immintrin.h>

enum {
    LINE = 64,
};

static void copy_lines_sse2(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(__m128i)) {
        _mm_stream_si128((void *)(to + i), _mm_loadu_si128((const void *)(from + i)));
    }
}

HVD_TARGET_BEGIN("avx2")

/* Is 1.4 times as fast as copying 16 bytes at a time; 64 bytes at a time are no
 * faster. */
static void copy_lines_avx2(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(__m256i)) {
        _mm256_stream_si256((void *)(to + i),
                            _mm256_loadu_si256((const void *)(from + i)));
    }
}

HVD_TARGET_END

void hvd_copy_stream_at(enum hvd_kernel_level level, void *to, const void *from,
                        size_t bytes)
{
    size_t before = -(uintptr_t)to % LINE;
    size_t head = before < bytes ? before : bytes;
    size_t tail = (bytes - head) % LINE;
    size_t lines = bytes - head - tail;
    char *next = (char *)to + head;
    const char *source = (const char *)from + head;

    memcpy(to, from, head);
    if (level >= HVD_LEVEL_AVX2) {
        copy_lines_avx2(next, source, lines);
    } else {
        copy_lines_sse2(next, source, lines);
    }
    memcpy(next + lines, source + lines, tail);
    /* Non-temporal stores are not ordered with other stores. */
    _mm_sfence();
}

#else

void hvd_copy_stream_at(enum hvd_kernel_level level HVD_UNUSED, void *to,
                        const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#endif

void hvd_copy_stream(void *to, const void *from, size_t bytes)
{
    hvd_copy_stream_at(hvd_kernel_level(), to, from, bytes);
}
