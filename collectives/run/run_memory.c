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

/* Large blocks begin on a page. malloc would put them 64 bytes behind the begin of a
 * page; there a copy from an array that begins on a page takes 1.1 times as long, because
 * its reads seem to depend on the preceding writes. The largest blocks lie on huge pages:
 * a rank that stores 8 MiB into small pages of another rank spends a quarter of the time
 * in the kernel, which pins them one by one. */
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
        /* Advise whole huge pages only; a kernel without huge pages ignores this. The
         * advice stays with the pages after free. */
        madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return memory;
}
