/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that a forked child must not keep open.
 *
 * A data loader forks; should its parent be killed, the child's copies of the parent's
 * sockets would keep the connections alive, and nobody would learn of the death. So
 * fork() replaces each descriptor registered here by /dev/null in the child: the
 * connection is the parent's alone, nothing is sent, and what the child still has of the
 * library cannot reach a descriptor that the child opened later under the same number.
 *
 * Threads: any. */
#ifndef HVD_FORK_CLOSE_H
#define HVD_FORK_CLOSE_H

/* Has fork() take part from now on. Needed only by who calls the functions below with a
 * lock held that a fork takes too (pthread_atfork): to be called before that is
 * registered, since a fork takes the locks in the opposite order. */
void hvd_fork_close_watch(void);

/* Registers fd until hvd_fork_close_now. Returns 0 or HVD_ERR_NOMEM. */
int hvd_fork_close_add(int fd);

/* Closes fd, registered or not; -1 is fine. Leaves errno alone. */
void hvd_fork_close_now(int fd);

#endif
