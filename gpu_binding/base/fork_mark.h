/* SPDX-License-Identifier: Apache-2.0 */
/* A mark on this process that a forked child does not have: a page that the kernel gives
 * every child empty, however it was forked. Looking at it costs next to nothing, unlike
 * getpid, which is a system call (85 ns here) in every call of the public interface. */
#ifndef HVD_FORK_MARK_H
#define HVD_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

/* Zeroed: of no process. */
struct hvd_fork_mark {
    unsigned char *page; /* kept until the process ends; NULL: the kernel is too old */
    pid_t pid;
};

/* Marks this process; again is fine, also in a child. */
void hvd_fork_mark_set(struct hvd_fork_mark *mark);

/* Whether it was this process that set the mark. Any thread, after set. */
bool hvd_fork_mark_is_mine(const struct hvd_fork_mark *mark);

#endif
