/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a request while another thread drives. */
#include "collectives/core/waiters.h"

#include <time.h>

int hvd_waiters_init(struct hvd_waiters *waiters, struct hvd_error *err)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    failed |= pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&waiters->ended, &attributes);
    failed |= pthread_mutex_init(&waiters->lock, NULL);
    pthread_condattr_destroy(&attributes);
    return failed == 0 ? 0 : hvd_fail(err, HVD_ERR_SYS, "cannot create locks");
}

void hvd_waiters_finish(struct hvd_waiters *waiters)
{
    pthread_cond_destroy(&waiters->ended);
    pthread_mutex_destroy(&waiters->lock);
}

void hvd_waiters_wake(struct hvd_waiters *waiters)
{
    pthread_mutex_lock(&waiters->lock);
    pthread_cond_broadcast(&waiters->ended);
    pthread_mutex_unlock(&waiters->lock);
}

void hvd_waiters_sleep(struct hvd_waiters *waiters, hvd_waiters_test *done,
                       const void *arg, uint64_t seen, int64_t until_ns)
{
    const int64_t second = 1000000000;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / second),
                                   .tv_nsec = (long)(until_ns % second)};

    pthread_mutex_lock(&waiters->lock);
    atomic_fetch_add(&waiters->sleepers, 1);
    if (done(arg) || atomic_load(&waiters->times_let_go) != seen) {
        /* the request has ended, or the lock is free: do not sleep */
    } else if (until_ns < 0) {
        pthread_cond_wait(&waiters->ended, &waiters->lock);
    } else {
        pthread_cond_timedwait(&waiters->ended, &waiters->lock, &until);
    }
    atomic_fetch_sub(&waiters->sleepers, 1);
    pthread_mutex_unlock(&waiters->lock);
}
