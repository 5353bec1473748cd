/* SPDX-License-Identifier: Apache-2.0 */
/* Marks a process, so that a forked child knows that it is another one. */
#include "gpu_binding/base/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

/* Returns a page that is cleared in children; NULL before Linux 4.14, which cannot do
 * that. */
static unsigned char *make_page(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return NULL;
    }
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, bytes);
        return NULL;
    }
    return page;
}

void hvd_fork_mark_set(struct hvd_fork_mark *mark)
{
    mark->pid = getpid();
    if (mark->page == NULL) {
        mark->page = make_page();
    }
    if (mark->page != NULL) {
        *mark->page = 1;
    }
}

bool hvd_fork_mark_is_mine(const struct hvd_fork_mark *mark)
{
    return mark->page != NULL ? *mark->page == 1 : mark->pid == getpid();
}
