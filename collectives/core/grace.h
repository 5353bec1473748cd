/* SPDX-License-Identifier: Apache-2.0 */
/* Time for a rank of srun to say why it ends.
 *
 * When a task fails, `srun --kill-on-bad-exit` sends SIGTERM to all others at once. They
 * would end before they have printed which rank failed, and so would the rank that failed
 * itself, if another one returned first: srun then returns 143, not its code. So, once
 * the job has failed, SIGTERM ends this process some seconds later than it came; most
 * have ended by themselves by then.
 *
 * Only in a step with --hvd, not of an elastic job, whose ranks srun does not end; and
 * only if SIGTERM would end the process. What the program sets later takes the place of
 * this. A forked child ends at once.
 *
 * Threads: any. */
#ifndef HVD_GRACE_H
#define HVD_GRACE_H

enum {
    HVD_GRACE_S = 5
};

void hvd_grace_begin(void);

/* The process joins another job: SIGTERM is as before. */
void hvd_grace_end(void);

#endif
