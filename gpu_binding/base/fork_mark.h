/* SPDX-License-Identifier: Apache-2.0 */
/* Marks a process, so that a forked child knows that it is another one. The mark is in a
 * page that the kernel clears in every child, however it was forked. A look at the mark
 * costs next to nothing; a getpid in every call of the public interface would be a system
 * call (85 ns here). */
#ifndef HVD_FORK_MARK_H
#define HVD_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

/* Zeroed, it marks no process. */
struct hvd_fork_mark {
    unsigned char *page; /* kept until the process ends; NULL: the kernel is too old */
    pid_t pid;
};

/* Marks this process. It may be called again, also in a child. */
void hvd_fork_mark_set(struct hvd_fork_mark *mark);

/* True if this process has set the mark. Any thread may call it after set. */
bool hvd_fork_mark_is_mine(const struct hvd_fork_mark *mark);

#endif
