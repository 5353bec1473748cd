/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one rank: takes requests, agrees with the other ranks, runs batches.
 *
 * Whoever holds the drive lock moves things on: a thread that waits for a request, else the
 * progress thread. When nothing can move, the driver sleeps in epoll until a socket, the
 * network, a local rank or a submission wakes it; nothing wakes it at fixed times. */
#ifndef HVD_ENGINE_H
#define HVD_ENGINE_H

#include "collectives/agreement/request.h"
#include "collectives/engine/sets.h"
#include "pmix_boot/boot.h"

struct hvd_engine;

/* Joins the job and starts the progress thread. Collective. ranks: the launcher's ranks that
 * make up the job, as in hvd_init_ranks; NULL: all. The caller owns *out. */
int hvd_engine_create(const int *ranks, int count, struct hvd_engine **out,
                      struct hvd_error *err);

/* Opens the device if need be; *ready, the caller's, is what the stream has come to then. Any
 * thread. */
int hvd_engine_use_gpu(struct hvd_engine *engine, int device, void *stream,
                       struct hvd_held **ready, struct hvd_error *err);

/* Takes all entries of a request; their names must not be in flight. Any thread. The request
 * stays the caller's, to be freed when it has ended. */
int hvd_engine_submit(struct hvd_engine *engine, struct hvd_request *request,
                      struct hvd_error *err);

/* Blocks until the request has ended or timeout_ms has passed (negative: no limit); may
 * drive. Any thread. */
void hvd_engine_wait(struct hvd_engine *engine, struct hvd_request *request,
                     int timeout_ms);

/* The same until the request is launched, or has ended. */
void hvd_engine_wait_launched(struct hvd_engine *engine, struct hvd_request *request,
                              int timeout_ms);

/* Drives once if nobody else does. Any thread. */
void hvd_engine_poke(struct hvd_engine *engine);

/* Leaves the job: every pending request of every rank ends, batches already agreed are run to
 * their end. Afterwards submit fails. */
void hvd_engine_leave(struct hvd_engine *engine);

/* Stops the thread and frees everything; no other thread may be in any function. */
void hvd_engine_destroy(struct hvd_engine *engine);

/* Counts what this rank starts without a name, so that the n-th of one rank meets the n-th of
 * the others. The set is there. */
int64_t hvd_engine_count(struct hvd_engine *engine, int set, enum hvd_count what);

/* What reader says of a process set that this rank has seen added, under a lock; HVD_ERR_ARG when
 * there is none. */
typedef int hvd_set_reader(void *context, const struct hvd_set *set);
int hvd_engine_with_set(struct hvd_engine *engine, int set, hvd_set_reader *reader,
                        void *context);

/* The number of process sets; ids, if not NULL, gets theirs. */
int hvd_engine_sets(struct hvd_engine *engine, int *ids);

/* As hvd_timeline_start and _stop of hvd.h. Any thread. */
int hvd_engine_timeline_start(struct hvd_engine *engine, const char *path,
                              bool marks_cycles, struct hvd_error *err);
void hvd_engine_timeline_stop(struct hvd_engine *engine);

const struct hvd_boot *hvd_engine_boot(const struct hvd_engine *engine);

#endif
