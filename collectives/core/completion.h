/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tensor: the one call by which the layers below tell that it is over.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_COMPLETION_H
#define HVD_COMPLETION_H

struct hvd_job;
struct hvd_entry;

/* The agreement has released the entry, and its name is free: it ends, or, on a GPU (then
 * it has `done`) and without a failure, is launched. job: a struct hvd_job. */
void hvd_completion_end(void *job, struct hvd_entry *entry, int status, const char *text);

/* An entry on a GPU is launched: it has `done`, and finishes when the device has reached
 * that. */
void hvd_completion_launch(struct hvd_job *job, struct hvd_entry *entry);

/* The entry has ended, also one that was launched. Wakes the waiters of its request once
 * all of that has; then nothing may touch either any more. */
void hvd_completion_finish(struct hvd_job *job, struct hvd_entry *entry, int status,
                           const char *text);

#endif
