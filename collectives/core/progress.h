/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread drives this rank, and how it waits when nothing can move.
 *
 * The driver is the thread that holds the progress lock: one that waits for a request,
 * else the progress thread. The lock guards all of struct hvd_job that has no lock of its
 * own. It may be waited for: only the driver sleeps with it, on wakeup.h, and it gives
 * way when it is wanted. */
#ifndef HVD_PROGRESS_H
#define HVD_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/core/float_env.h"
#include "gpu_binding/base/error.h"

struct hvd_job;

enum {
    /* Polls in vain, where there is a network, before the processor is offered to others:
     * to the kernel's part of it. A poll of the network is a system call. */
    HVD_PROGRESS_YIELD_EVERY_NET = 3
};

struct hvd_progress {
    pthread_mutex_t lock;
    struct hvd_float_env drivers_floats; /* what the driver had before; the lock's */
    /* held by a waiter that found the lock taken, until it has the lock */
    pthread_mutex_t turn;
    _Atomic bool is_wanted; /* that waiter wants the driver to give the lock up */
    _Atomic bool thread_drives; /* the progress thread holds the lock */
    _Atomic int64_t thread_wakes_ns; /* until when it sleeps; -1: until it is woken */
    _Atomic bool stop;
    pthread_t thread;
    bool has_thread;
    /* The lock's: the last driver has said that this rank sleeps, and left nothing
     * undone. */
    bool is_settled;
    /* When the driver last found tensors, with the cycle time then, and messages. Any
     * thread. */
    _Atomic int64_t tensors_ns;
    _Atomic int64_t cycle_ns;
    _Atomic int64_t p2p_ns;
};

/* The driver has taken tensors, or messages, that were submitted: the next may come soon.
 * The times of tensors only say how long a timed wait may be, so no order is needed. */
static inline void hvd_progress_note_tensors(struct hvd_progress *progress,
                                             int64_t now_ns, int64_t cycle_ns)
{
    atomic_store_explicit(&progress->tensors_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&progress->cycle_ns, cycle_ns, memory_order_relaxed);
}

static inline void hvd_progress_note_p2p(struct hvd_progress *progress, int64_t now_ns)
{
    atomic_store(&progress->p2p_ns, now_ns);
}

/* The progress thread, once it is started. */
static inline pthread_t hvd_progress_thread(const struct hvd_progress *progress)
{
    return progress->thread;
}

/* The floating-point environment that the driver gets back when it unlocks. */
static inline struct hvd_float_env *hvd_progress_floats(struct hvd_progress *progress)
{
    return &progress->drivers_floats;
}

void hvd_progress_init(struct hvd_progress *progress);
void hvd_progress_finish(struct hvd_progress *progress);

/* The progress thread: drives when nobody waits. Made in hvd's floating-point
 * environment. */
int hvd_progress_start_thread(struct hvd_job *job, struct hvd_error *err);
void hvd_progress_stop_thread(struct hvd_job *job);

/* Locks the progress lock, and enters hvd's floating-point environment: no code of the
 * program runs until unlock. That puts the rank to rest: from then on events ring, or the
 * progress thread looks for them. */
void hvd_progress_lock(struct hvd_job *job);
void hvd_progress_unlock(struct hvd_job *job);

/* Drives until done says so, somebody else wants to, or the time has come (-1: no limit);
 * returns whether it is done. The lock is held. */
typedef bool hvd_progress_test(const void *arg);
bool hvd_progress_drive(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                        int64_t until_ns);

/* The same until it is done or the time has come, which it does: who else wants to drive
 * gets the lock, and this thread gets it back. What it guards may have changed on the
 * way. */
bool hvd_progress_drive_on(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                           int64_t until_ns);

/* For a thread that does not hold the lock: drives, or sleeps while another one does,
 * until it is done or the time has passed (negative: no limit). It asks `done` only when
 * it drives or has slept: ask before. */
void hvd_progress_wait(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                       int timeout_ms);

/* Likewise: polls once if nobody has the lock. */
void hvd_progress_try_poll(struct hvd_job *job);

/* Starts the messages that have been submitted, if no thread has the lock, and wakes
 * none: events ring as before. Else rings the driver, if it sleeps; one that does not
 * looks at submissions before it has unlocked. */
void hvd_progress_start_p2p(struct hvd_job *job);

#endif
