/* SPDX-License-Identifier: Apache-2.0 */
/* The file descriptors on which this rank's threads sleep, and how they are woken.
 *
 *   inner   sockets, network, local_event, wake: the driver (progress.h) sleeps on it
 *   outer   inner, thread_event: the progress thread sleeps on it; inner is suppressed in it
 *           when it would wake the thread while a waiter drives
 *
 * No event is lost between falling asleep and sleeping, in this order:
 *   1. say so (asleep for submissions, the shared flag for local ranks): hvd_wakeup_announce_sleep
 *   2. look once more at everything that would have rung: the caller, and hvd_wakeup_arm_net
 *   3. sleep, until something rings or a time has come
 *
 * A waiter that leaves need not do this while the progress thread is going to, at a time
 * that has been set: progress.c.
 *
 * Threads: the progress lock is held, but for what says otherwise. */
#ifndef HVD_WAKEUP_H
#define HVD_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_net;
struct hvd_shm;

struct hvd_wakeup {
    struct hvd_shm *shm; /* borrowed; NULL until it is there */
    int inner;
    int outer;
    int wake; /* eventfd: a submission came while the driver slept */
    int local_event; /* eventfd: a local rank signalled while this one slept */
    int thread_event; /* eventfd: the progress thread must look */
    int *peers; /* [peer_count], eventfds of the local ranks, this one's place too */
    int peer_count;
    uint64_t due_rings; /* of local_event: announced, maybe not there yet */
    bool says_asleep; /* local ranks have been told so, and not that it is awake */
    int net_fd; /* of the network, once inner has it */
    bool ignores_net; /* the network is muted in inner */
    _Atomic bool asleep; /* a submission has to ring */
    _Atomic bool was_rung; /* wake has been written to */
    pthread_mutex_t muting; /* guards is_muted; held for an instant by any thread */
    bool is_muted; /* inner, in outer */
};

/* Ends with close in any case. */
int hvd_wakeup_open(struct hvd_wakeup *wakeup, struct hvd_error *err);
void hvd_wakeup_close(struct hvd_wakeup *wakeup);

/* Room for the eventfds of the local ranks, which close closes. */
int hvd_wakeup_expect_peers(struct hvd_wakeup *wakeup, int local_size,
                            struct hvd_error *err);

/* From now on inner has this file descriptor; what: its name, for errors. */
int hvd_wakeup_watch(struct hvd_wakeup *wakeup, int fd, const char *what,
                     struct hvd_error *err);
int hvd_wakeup_watch_net(struct hvd_wakeup *wakeup, int fd, struct hvd_error *err);

/* What the ranks of a node exchange: the eventfd of this one, and those of all, [local
 * rank]. */
int hvd_wakeup_own(const struct hvd_wakeup *wakeup);
int *hvd_wakeup_peers(struct hvd_wakeup *wakeup);

/* From now on local ranks are told when this one sleeps. shm is borrowed. */
void hvd_wakeup_join(struct hvd_wakeup *wakeup, struct hvd_shm *shm);

/* Wakes the driver. Any thread. */
void hvd_wakeup_notify(struct hvd_wakeup *wakeup);

/* The same if it is asleep: sleeps, and submissions have to ring. Any thread. */
static inline void hvd_wakeup_notify_sleeper(struct hvd_wakeup *wakeup)
{
    /* Only one of many needs to ring, until the driver has woken. */
    if (atomic_load(&wakeup->asleep) && atomic_exchange(&wakeup->asleep, false)) {
        hvd_wakeup_notify(wakeup);
    }
}

/* Wakes the progress thread. Any thread. */
void hvd_wakeup_notify_thread(struct hvd_wakeup *wakeup);

/* inner, in outer. Any thread, without the progress lock. */
void hvd_wakeup_suppress(struct hvd_wakeup *wakeup, bool is_muted);

/* Step 1. is_timed: not for long, and submissions need not ring. */
void hvd_wakeup_announce_sleep(struct hvd_wakeup *wakeup, bool is_timed);

/* Part of step 2: lets the network ring, or not (is_ignored, after hvd_wakeup_watch_net).
 * True: an event is already there. */
bool hvd_wakeup_arm_net(struct hvd_wakeup *wakeup, struct hvd_net *net, bool is_ignored);
bool hvd_wakeup_ignore_net(const struct hvd_wakeup *wakeup);

/* Takes back what hvd_wakeup_announce_sleep said, and silences what may have rung
 * since. */
void hvd_wakeup_end_sleep(struct hvd_wakeup *wakeup);

/* Step 3, until something rings or the time has come (-1: no limit): of the driver; and,
 * without the lock, of the progress thread, which takes thread_event back. */
void hvd_wakeup_sleep(struct hvd_wakeup *wakeup, int64_t until_ns);
void hvd_wakeup_sleep_idle(struct hvd_wakeup *wakeup, int64_t until_ns);

#endif
