/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a request while another thread drives (progress.h).
 *
 * No wake-up is lost: the driver unlocks the progress lock, counts, looks for sleepers; a
 * sleeper reads the count, tries to get the progress lock, says under `lock` that it
 * sleeps, and reads the count again. Either it sees the new count, or the driver sees it,
 * and gets `lock` only when it sleeps. The end of a request is told likewise, by its
 * status in place of the count.
 *
 * Threads: any. `lock` is held for a few instructions; who holds it takes no other
 * lock. */
#ifndef HVD_WAITERS_H
#define HVD_WAITERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_waiters {
    _Atomic int count; /* threads that wait for a request */
    _Atomic int sleepers; /* those that sleep on `ended`; changed under lock */
    _Atomic uint64_t times_let_go; /* how often the progress lock has been given up */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* some request has ended, or the driver has left */
};

int hvd_waiters_init(struct hvd_waiters *waiters, struct hvd_error *err);
void hvd_waiters_finish(struct hvd_waiters *waiters);

/* Wakes all that sleep. */
void hvd_waiters_wake(struct hvd_waiters *waiters);

/* A request has ended, or is launched: its status is written before this looks for
 * sleepers. */
static inline void hvd_waiters_tell(struct hvd_waiters *waiters)
{
    if (atomic_load(&waiters->sleepers) > 0) {
        hvd_waiters_wake(waiters);
    }
}

/* A thread waits for a request from now on (1), or does not any more (-1). */
static inline void hvd_waiters_count(struct hvd_waiters *waiters, int one)
{
    atomic_fetch_add(&waiters->count, one);
}

/* Whether any thread waits for a request. */
static inline bool hvd_waiters_exist(const struct hvd_waiters *waiters)
{
    return atomic_load(&waiters->count) > 0;
}

/* How often the progress lock has been given up, for hvd_waiters_sleep. */
static inline uint64_t hvd_waiters_times_let_go(const struct hvd_waiters *waiters)
{
    return atomic_load(&waiters->times_let_go);
}

/* The driver unlocks the progress lock, and wakes those that sleep until then. */
void hvd_waiters_let_go(struct hvd_waiters *waiters, pthread_mutex_t *progress_lock);

/* Sleeps until something has ended, or a driver has left since that had happened `seen`
 * times, or the time has come (-1: no limit). Not if done, asked under the lock, says
 * so. */
typedef bool hvd_waiters_test(const void *arg);
void hvd_waiters_sleep(struct hvd_waiters *waiters, hvd_waiters_test *done,
                       const void *arg, uint64_t seen, int64_t until_ns);

#endif
