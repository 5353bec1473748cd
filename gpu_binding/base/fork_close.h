/* SPDX-License-Identifier: Apache-2.0 */
/* Closes descriptors in forked children, which must not keep them open.
 *
 * Suppose that a rank forks a data loader and is then killed. The child's copies of its
 * sockets would keep the connections open, and other ranks would not learn of the death.
 * Therefore fork() replaces each descriptor registered here by /dev/null in the child;
 * nothing is sent over the parent's connection. If library code still runs in the child,
 * it cannot use a descriptor that the child opened later under the same number.
 *
 * Threads: any. */
#ifndef HVD_FORK_CLOSE_H
#define HVD_FORK_CLOSE_H

/* Registers the handlers of fork() now, instead of at the first hvd_fork_close_add. A
 * caller needs this only if it holds a lock of its own during the calls below and also
 * takes that lock in a handler of pthread_atfork. It must call this before it registers
 * its handler: fork() calls the handlers in reverse order, and so takes the caller's lock
 * first, as the calls below do. */
void hvd_fork_close_watch(void);

/* Registers fd until hvd_fork_close_now. Returns 0 or HVD_ERR_NOMEM. */
int hvd_fork_close_add(int fd);

/* Closes fd, whether it is registered or not; -1 is fine. Leaves errno alone. */
void hvd_fork_close_now(int fd);

#endif
