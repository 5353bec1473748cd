/* SPDX-License-Identifier: Apache-2.0 */
/* The file descriptors on which this rank's threads sleep, and how they are woken.
 *
 *   inner   an epoll descriptor for sockets, network, local_event and wake; the driver
 *           (progress.h) sleeps on it
 *   outer   an epoll descriptor for inner and thread_event; the progress thread sleeps on
 *           it. While a waiter drives, inner is muted in outer if it would wake the
 *           progress thread
 *
 * No event is lost on the way to sleep if the driver keeps this order:
 *   1. announce the sleep to submitting threads and local ranks:
 *      hvd_wakeup_announce_sleep
 *   2. poll once more everything that now wakes: the caller, and hvd_wakeup_arm_net
 *   3. sleep until an event or a deadline
 *
 * A waiter that leaves may skip this if the progress thread is going to poll at a set
 * time: progress.c.
 *
 * Threads: the progress lock is held, unless a function says otherwise. */
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
    struct hvd_shm *shm; /* borrowed; NULL until hvd_wakeup_join */
    int inner;
    int outer;
    int wake; /* eventfd: a request was submitted while the driver slept */
    int local_event; /* eventfd: a local rank has signalled while this one slept */
    int thread_event; /* eventfd: the progress thread must poll */
    /* [peer_count] the eventfds of all local ranks, by local rank */
    int *peers;
    int peer_count;
    /* signals to local_event that were announced but perhaps have not arrived */
    uint64_t due_rings;
    bool says_asleep; /* local ranks have been told that this one sleeps */
    int net_fd; /* the network's descriptor, once it is in inner */
    bool ignores_net; /* the network is muted in inner */
    _Atomic bool asleep; /* a submission must wake the driver */
    _Atomic bool was_rung; /* wake has been written to */
    pthread_mutex_t muting; /* protects is_muted; any thread may hold it for an instant */
    bool is_muted; /* inner is muted in outer */
};

/* Opens the descriptors. Call close also after a failure. */
int hvd_wakeup_open(struct hvd_wakeup *wakeup, struct hvd_error *err);
void hvd_wakeup_close(struct hvd_wakeup *wakeup);

/* Makes room for the eventfds of the local ranks; close closes them. */
int hvd_wakeup_expect_peers(struct hvd_wakeup *wakeup, int local_size,
                            struct hvd_error *err);

/* Adds a descriptor to inner. what: its name in errors. */
int hvd_wakeup_watch(struct hvd_wakeup *wakeup, int fd, const char *what,
                     struct hvd_error *err);
int hvd_wakeup_watch_net(struct hvd_wakeup *wakeup, int fd, struct hvd_error *err);

/* hvd_wakeup_own returns the eventfd that this rank gives to the other ranks of its node.
 * hvd_wakeup_peers returns the array for the eventfds of all local ranks. */
int hvd_wakeup_own(const struct hvd_wakeup *wakeup);
int *hvd_wakeup_peers(struct hvd_wakeup *wakeup);

/* Makes this rank tell the local ranks when it sleeps. shm is borrowed. */
void hvd_wakeup_join(struct hvd_wakeup *wakeup, struct hvd_shm *shm);

/* Wakes the driver. Any thread. */
void hvd_wakeup_notify(struct hvd_wakeup *wakeup);

/* Wakes the driver if it sleeps and has announced that submissions must wake it. Any
 * thread. */
static inline void hvd_wakeup_notify_sleeper(struct hvd_wakeup *wakeup)
{
    /* One of many submissions is enough to wake the driver. */
    if (atomic_load(&wakeup->asleep) && atomic_exchange(&wakeup->asleep, false)) {
        hvd_wakeup_notify(wakeup);
    }
}

/* Wakes the progress thread. Any thread. */
void hvd_wakeup_notify_thread(struct hvd_wakeup *wakeup);

/* Mutes inner in outer, or unmutes it. Any thread, without the progress lock. */
void hvd_wakeup_suppress(struct hvd_wakeup *wakeup, bool is_muted);

/* Step 1. is_timed: for a timed wait, in which submissions need not wake the rank. */
void hvd_wakeup_announce_sleep(struct hvd_wakeup *wakeup, bool is_timed);

/* Step 2 for the network: lets it wake the rank. If is_ignored, mutes it instead, which
 * is allowed only after hvd_wakeup_watch_net. Returns true if an event is already
 * there. */
bool hvd_wakeup_arm_net(struct hvd_wakeup *wakeup, struct hvd_net *net, bool is_ignored);

/* Returns whether the network is muted. */
bool hvd_wakeup_ignore_net(const struct hvd_wakeup *wakeup);

/* Withdraws the announcement of hvd_wakeup_announce_sleep, and drains signals that have
 * come since. */
void hvd_wakeup_end_sleep(struct hvd_wakeup *wakeup);

/* Drains notifications at the cost of a system call. hvd_wakeup_end_sleep makes none
 * unless was_rung is set, which a notifying thread does last: a thread that it has woken
 * may run before that, on the same CPU, and would never sleep while it keeps the other
 * from running. */
void hvd_wakeup_drain(struct hvd_wakeup *wakeup);

/* Step 3: sleep until an event or until_ns (-1: no limit). hvd_wakeup_sleep is for the
 * thread that drives the job, and drains notifications; hvd_wakeup_sleep_idle is for the
 * progress thread while it does not hold the progress lock, and drains thread_event. */
void hvd_wakeup_sleep(struct hvd_wakeup *wakeup, int64_t until_ns);
void hvd_wakeup_sleep_idle(struct hvd_wakeup *wakeup, int64_t until_ns);

#endif
