/* SPDX-License-Identifier: Apache-2.0 */
/* Closes descriptors in forked children, which must not keep them open.
 *
 * A data loader forks. If its parent is then killed, the child's copies of the parent's
 * sockets keep the connections open, and other ranks do not learn of the death. Therefore
 * fork() replaces each descriptor registered here by /dev/null in the child. The
 * connection belongs to the parent alone, and nothing is sent. Library code that still
 * runs in the child cannot use a descriptor that the child opened later under the same
 * number.
 *
 * Threads: any. */
#ifndef HVD_FORK_CLOSE_H
#define HVD_FORK_CLOSE_H

/* Registers the handlers of fork(), which the first hvd_fork_close_add does otherwise. A
 * caller needs this only if it holds a lock of its own during the calls below, and also
 * takes that lock in a handler of pthread_atfork. It must then call this before it
 * registers its handler: fork() runs the handlers in the opposite order, so that it takes
 * the caller's lock first, as the caller does. */
void hvd_fork_close_watch(void);

/* Registers fd until hvd_fork_close_now. Returns 0 or HVD_ERR_NOMEM. */
int hvd_fork_close_add(int fd);

/* Closes fd, whether it is registered or not; -1 is fine. Leaves errno alone. */
void hvd_fork_close_now(int fd);

#endif
