/* SPDX-License-Identifier: Apache-2.0 */
/* A delay of SIGTERM, in which a rank under srun can still say why it ends.
 *
 * When a task fails, `srun --kill-on-bad-exit` sends SIGTERM to all other tasks at once.
 * They would end before they have printed which rank failed. The failed rank could be
 * among them, if another one returned first: srun then returns 143 instead of its exit
 * code. So, once the job has failed, SIGTERM ends this process only after HVD_GRACE_S
 * seconds; most processes have ended by then.
 *
 * The delay is used only in a step with --hvd, and only if SIGTERM would end the process.
 * It is not used in an elastic job, whose ranks srun does not end. A handler that the
 * program sets later replaces it. A forked child ends at once.
 *
 * Threads: any. */
#ifndef HVD_GRACE_H
#define HVD_GRACE_H

enum {
    HVD_GRACE_S = 5
};

void hvd_grace_begin(void);

/* Ends the delay: the process joins another job, and SIGTERM acts as before. */
void hvd_grace_end(void);

#endif
