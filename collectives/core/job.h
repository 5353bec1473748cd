/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one rank: takes requests, agrees with the other ranks, runs batches.
 * Threads wait for requests by progress.h.
 *
 * Whoever holds the progress lock moves things on: a thread that waits for a request,
 * else the progress thread. When nothing can move, the driver sleeps in epoll until a
 * socket, the network, a local rank or a submission wakes it; nothing wakes it at fixed
 * times. */
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

/* Joins the job and starts the progress thread. Collective. who: the ranks or the store
 * of the job; its card and its time limit are filled in here. The caller owns *out. */
int hvd_job_create(const struct hvd_boot_query *who, struct hvd_job **out,
                   struct hvd_error *err);

/* Leaves the job: every pending request of every rank ends, batches already agreed are
 * run to their end. Afterwards submit fails. why: a line, or NULL; the others are told
 * it. */
void hvd_job_leave(struct hvd_job *job, const char *why);

/* Stops the thread and frees everything; no other thread may be in any function. */
void hvd_job_destroy(struct hvd_job *job);

/* Opens the device if need be; *ready, the caller's, is what the stream has come to then.
 * Any thread. */
int hvd_job_use_gpu(struct hvd_job *job, int device, void *stream,
                    struct hvd_refcount **ready, struct hvd_error *err);

/* Takes all entries of a request; their names must not be in flight. Any thread. The
 * request stays the caller's, to be freed when it has ended. */
int hvd_job_submit(struct hvd_job *job, struct hvd_request *request,
                   struct hvd_error *err);

/* A persistent request of this job, which has ended, is about to be freed. Any thread. */
void hvd_job_forget(struct hvd_job *job, struct hvd_request *request);

/* Finds the host memory through which the message of a GPU tensor goes; the entry owns
 * it. After hvd_job_use_gpu. Any thread. */
int hvd_job_find_p2p_memory(struct hvd_job *job, struct hvd_entry *entry,
                            struct hvd_error *err);

/* Submits a request of one send or receive, which is started at once if nobody drives. */
int hvd_job_submit_p2p(struct hvd_job *job, struct hvd_request *request,
                       struct hvd_error *err);

/* As hvd_gpu_synchronize of hvd.h, in a job. Any thread. */
int hvd_job_gpu_synchronize(struct hvd_job *job, int timeout_ms, struct hvd_error *err);

/* As hvd_gpu_memory_is_short and hvd_gpu_memory_freed of hvd.h, in a job. Any thread. */
bool hvd_job_gpu_is_short(struct hvd_job *job);
void hvd_job_gpu_freed(struct hvd_job *job);

/* The job, and its process sets; borrowed until destroy. */
const struct hvd_boot *hvd_job_boot(const struct hvd_job *job);
struct hvd_sets *hvd_job_sets(struct hvd_job *job);

#endif
