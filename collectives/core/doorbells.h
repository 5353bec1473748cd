/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors on which this rank's threads sleep, and how they are woken.
 *
 *   inner   sockets, network, doorbell, wake: the driver (progress.h) sleeps on it
 *   outer   inner, kick: the progress thread sleeps on it; inner is muted in it when it would wake
 *           the thread while a waiter drives
 *
 * No event is lost between falling asleep and sleeping, in this order:
 *   1. say so (asleep for submissions, the shared flag for local ranks): hvd_doorbells_say_asleep
 *   2. look once more at everything that would have rung: the caller, and hvd_doorbells_arm_net
 *   3. sleep, until something rings or a time has come
 *
 * A waiter that leaves need not do this while the progress thread is going to, at a time that has been
 * set: progress.c.
 *
 * Threads: the progress lock is held, but for what says otherwise. */
#ifndef HVD_DOORBELLS_H
#define HVD_DOORBELLS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_net;
struct hvd_shm;

struct hvd_doorbells {
    struct hvd_shm *shm; /* borrowed; NULL until it is there */
    int inner;
    int outer;
    int wake; /* eventfd: a submission came while the driver slept */
    int doorbell; /* eventfd: a local rank signalled while this one slept */
    int kick; /* eventfd: the progress thread must look */
    int *peers; /* [peer_count], doorbells of the local ranks, this one's place too */
    int peer_count;
    uint64_t due_rings; /* of the doorbell: announced, maybe not there yet */
    bool says_asleep; /* local ranks have been told so, and not that it is awake */
    int net_fd; /* of the network, once inner has it */
    bool ignores_net; /* the network is muted in inner */
    _Atomic bool asleep; /* a submission has to ring */
    _Atomic bool was_rung; /* wake has been written to */
    pthread_mutex_t muting; /* guards is_muted; held for an instant by any thread */
    bool is_muted; /* inner, in outer */
};

/* Ends with close in any case. */
int hvd_doorbells_open(struct hvd_doorbells *bells, struct hvd_error *err);
void hvd_doorbells_close(struct hvd_doorbells *bells);

/* Room for the doorbells of the local ranks, which close closes. */
int hvd_doorbells_expect_peers(struct hvd_doorbells *bells, int local_size,
                               struct hvd_error *err);

/* From now on inner has the descriptor, of what. */
int hvd_doorbells_watch(struct hvd_doorbells *bells, int fd, const char *what,
                        struct hvd_error *err);
int hvd_doorbells_watch_net(struct hvd_doorbells *bells, int fd, struct hvd_error *err);

/* What the ranks of a node exchange: the doorbell of this one, and those of all, [local
 * rank]. */
int hvd_doorbells_own(const struct hvd_doorbells *bells);
int *hvd_doorbells_peers(struct hvd_doorbells *bells);

/* From now on local ranks are told when this one sleeps. shm is borrowed. */
void hvd_doorbells_join(struct hvd_doorbells *bells, struct hvd_shm *shm);

/* Wakes the driver. Any thread. */
void hvd_doorbells_ring(struct hvd_doorbells *bells);

/* The same if it is asleep: sleeps, and submissions have to ring. Any thread. */
static inline void hvd_doorbells_ring_sleeper(struct hvd_doorbells *bells)
{
    /* Only one of many needs to ring, until the driver has woken. */
    if (atomic_load(&bells->asleep) && atomic_exchange(&bells->asleep, false)) {
        hvd_doorbells_ring(bells);
    }
}

/* Wakes the progress thread. Any thread. */
void hvd_doorbells_kick(struct hvd_doorbells *bells);

/* inner, in outer. Any thread, without the progress lock. */
void hvd_doorbells_mute(struct hvd_doorbells *bells, bool is_muted);

/* Step 1. dozes: not for long, and submissions need not ring. */
void hvd_doorbells_say_asleep(struct hvd_doorbells *bells, bool dozes);

/* Part of step 2: lets the network ring, or not (is_ignored, after watch_net). True: an
 * event is already there. */
bool hvd_doorbells_arm_net(struct hvd_doorbells *bells, struct hvd_net *net,
                           bool is_ignored);
bool hvd_doorbells_ignore_net(const struct hvd_doorbells *bells);

/* Takes back what say_asleep said, and silences what may have rung since. */
void hvd_doorbells_wake_up(struct hvd_doorbells *bells);

/* Step 3, until something rings or the time has come (-1: no limit): of the driver; and, without the
 * lock, of the progress thread, which takes a kick as heard. */
void hvd_doorbells_sleep(struct hvd_doorbells *bells, int64_t until_ns);
void hvd_doorbells_sleep_idle(struct hvd_doorbells *bells, int64_t until_ns);

#endif
