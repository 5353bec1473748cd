/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one rank: takes requests, agrees on them with the other ranks, and runs
 * batches. Threads wait for requests through progress.h.
 *
 * The thread that holds the progress lock drives the rank: a thread that waits for a
 * request, or else the progress thread. When nothing can move, the driver sleeps in epoll
 * until a socket, the network, a local rank or a submission wakes it. There is no
 * periodic wake-up. */
#ifndef HVD_JOB_H
#define HVD_JOB_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_boot;
struct hvd_boot_query;
struct hvd_job;
struct hvd_entry;
struct hvd_refcount;
struct hvd_sets;
struct hvd_request;

/* Joins the job and starts the progress thread. Collective. who: tells where the ranks of
 * the job are found; this function sets its card and time limit. The caller owns *out. */
int hvd_job_create(const struct hvd_boot_query *who, struct hvd_job **out,
                   struct hvd_error *err);

/* Leaves the job. All ranks leave: their pending requests end, and batches that were
 * already agreed on run to their end. Afterwards submissions fail. why: a line of text
 * that the other ranks are told, or NULL. */
void hvd_job_leave(struct hvd_job *job, const char *why);

/* Stops the progress thread and frees everything. No other thread may be inside any
 * function of the job. */
void hvd_job_destroy(struct hvd_job *job);

/* Opens the device if it is not open yet, and stores in *ready a marker of the stream's
 * present end, which the caller owns. Any thread. */
int hvd_job_use_gpu(struct hvd_job *job, int device, void *stream,
                    struct hvd_refcount **ready, struct hvd_error *err);

/* Submits all entries of a request, whose names must not be in flight. Any thread. The
 * caller keeps the request and frees it after its end. */
int hvd_job_submit(struct hvd_job *job, struct hvd_request *request,
                   struct hvd_error *err);

/* Forgets a persistent request of this job, which has ended and is about to be freed. Any
 * thread. */
void hvd_job_forget(struct hvd_job *job, struct hvd_request *request);

/* Finds the host buffer for a send or receive of a GPU tensor; the entry owns it. Call
 * hvd_job_use_gpu before. Any thread. */
int hvd_job_find_p2p_memory(struct hvd_job *job, struct hvd_entry *entry,
                            struct hvd_error *err);

/* Submits a request of one send or receive, and starts it at once if no thread drives. */
int hvd_job_submit_p2p(struct hvd_job *job, struct hvd_request *request,
                       struct hvd_error *err);

/* Does the work of hvd_gpu_synchronize in hvd.h, for an open job. Any thread. */
int hvd_job_gpu_synchronize(struct hvd_job *job, int timeout_ms, struct hvd_error *err);

/* Do the work of hvd_gpu_memory_is_short and hvd_gpu_memory_freed in hvd.h, for an open
 * job. Any thread. */
bool hvd_job_gpu_is_short(struct hvd_job *job);
void hvd_job_gpu_freed(struct hvd_job *job);

/* Return the job's ranks, and its process sets; borrowed until destroy. */
const struct hvd_boot *hvd_job_boot(const struct hvd_job *job);
struct hvd_sets *hvd_job_sets(struct hvd_job *job);

/* Counts a step of the training (live.h). One thread at a time. */
void hvd_job_count_step(struct hvd_job *job);

/* Do the work of hvd_section_begin and hvd_section_end in hvd.h. Any thread. */
void hvd_job_begin_section(struct hvd_job *job, const char *name);
int hvd_job_end_section(struct hvd_job *job);

#endif
