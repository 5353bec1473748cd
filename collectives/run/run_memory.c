/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates memory for batches. */
#include <stdlib.h>
#include <sys/mman.h>

#include "collectives/run/run_state.h"

enum {
    LEAST_ALIGNMENT = 64,
    LARGE_ALIGNMENT = 4096,
    LARGE = 64 << 10,
    HUGE_PAGE = 2 << 20,
};

/* Large memory begins on a page. Where malloc would put it, 64 bytes behind a page's
 * begin, a copy from an array on a page takes 1.1 times as long: its reads seem to hit
 * what was just written. The largest memory lies on huge pages: another rank that stores
 * 8 MiB into small pages spends a quarter of the time in the kernel, which pins them one
 * by one. */
static size_t alignment_of(size_t bytes)
{
    return bytes >= HUGE_PAGE ? HUGE_PAGE
           : bytes >= LARGE   ? LARGE_ALIGNMENT
                              : LEAST_ALIGNMENT;
}

void *hvd_run_memory(size_t bytes)
{
    size_t alignment = alignment_of(bytes);
    void *memory;

    if (posix_memalign(&memory, alignment, bytes) != 0) {
        return NULL;
    }
    if (alignment == HUGE_PAGE) {
        /* Only whole huge pages; a kernel without them leaves small ones. The advice
         * stays with the pages after free. */
        madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return memory;
}
