/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tensor: the functions by which the layers below report it.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_COMPLETION_H
#define HVD_COMPLETION_H

struct hvd_job;
struct hvd_entry;

/* Ends an entry that the agreement has released, and whose name is free. But an entry on
 * a GPU that has not failed (`done` is set) is launched instead. job: a struct hvd_job.
 */
void hvd_completion_end(void *job, struct hvd_entry *entry, int status, const char *text);

/* Marks an entry on a GPU as launched: its work is queued on the device. The entry
 * finishes when the device has reached the point `done`. */
void hvd_completion_launch(struct hvd_job *job, struct hvd_entry *entry);

/* Finishes an entry, launched or not. Wakes the waiters of its request when its last
 * entry finishes; from then on the request and its entries must not be touched. */
void hvd_completion_finish(struct hvd_job *job, struct hvd_entry *entry, int status,
                           const char *text);

#endif
