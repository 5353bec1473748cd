/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as large as a batch.
 *
 * Large ones begin on a page: 64 bytes behind it, as malloc would have it, a copy from an
 * array on a page reads what seems to be just written, which makes it 1.1 times as slow.
 * The largest lie on huge pages: of 8 MiB that another rank stores into small ones the
 * kernel takes hold page by page, which is a quarter of the time. */
#include "collectives/execute/run_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    LEAST_ALIGNMENT = 64,
    LARGE_ALIGNMENT = 4096,
    LARGE = 64 << 10,
    HUGE_PAGE = 2 << 20,
};

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
        /* Whole ones, so that none is half used; a kernel without them gives others. The
         * advice stays with the heap's pages when they are given back to it. */
        madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return memory;
}
