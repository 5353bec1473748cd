/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a request while another thread drives (progress.h).
 *
 * No wake-up is lost. The driver unlocks the progress lock, increments times_let_go, and
 * checks for sleepers. A sleeper reads the counter, tries to get the progress lock,
 * registers as a sleeper under `lock`, and reads the counter again. Either the sleeper
 * sees the new count, or the driver sees the sleeper, and gets `lock` only once that
 * thread sleeps. The end of a request is signalled in the same way, with its status in
 * place of the counter.
 *
 * Threads: any. `lock` is held for a few instructions; its holder takes no other lock. */
#ifndef HVD_WAITERS_H
#define HVD_WAITERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_waiters {
    _Atomic int count; /* threads that wait for a request */
    _Atomic int sleepers; /* threads that sleep on `ended`; changed under lock */
    _Atomic uint64_t times_let_go; /* how often the progress lock has been given up */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* some request has ended, or the driver has left */
};

int hvd_waiters_init(struct hvd_waiters *waiters, struct hvd_error *err);
void hvd_waiters_finish(struct hvd_waiters *waiters);

/* Wakes all sleepers. */
void hvd_waiters_wake(struct hvd_waiters *waiters);

/* Wakes the sleepers after a request has ended or has been launched. Its status must be
 * stored before this call. */
static inline void hvd_waiters_tell(struct hvd_waiters *waiters)
{
    if (atomic_load(&waiters->sleepers) > 0) {
        hvd_waiters_wake(waiters);
    }
}

/* Counts one more thread that waits for a request (1), or one less (-1). */
static inline void hvd_waiters_count(struct hvd_waiters *waiters, int one)
{
    atomic_fetch_add(&waiters->count, one);
}

/* Whether any thread waits for a request. */
static inline bool hvd_waiters_exist(const struct hvd_waiters *waiters)
{
    return atomic_load(&waiters->count) > 0;
}

/* Returns how often the progress lock has been given up, for hvd_waiters_sleep. */
static inline uint64_t hvd_waiters_times_let_go(const struct hvd_waiters *waiters)
{
    return atomic_load(&waiters->times_let_go);
}

/* Unlocks the progress lock, and wakes the threads that sleep until then. */
static inline void hvd_waiters_let_go(struct hvd_waiters *waiters,
                                      pthread_mutex_t *progress_lock)
{
    pthread_mutex_unlock(progress_lock);
    atomic_fetch_add(&waiters->times_let_go, 1);
    hvd_waiters_tell(waiters);
}

/* Sleeps until a request has ended, the progress lock has been given up more than `seen`
 * times, or until_ns has come (-1: no limit). Does not sleep if done(), asked under
 * `lock`, returns true. */
typedef bool hvd_waiters_test(const void *arg);
void hvd_waiters_sleep(struct hvd_waiters *waiters, hvd_waiters_test *done,
                       const void *arg, uint64_t seen, int64_t until_ns);

#endif
