/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that drives this rank, and how it waits when nothing can move.
 *
 * The driver is the thread that holds the progress lock: a thread that waits for a
 * request, or else the progress thread. The lock protects all of struct hvd_job that has
 * no lock of its own. Waiting for the lock is safe: only the driver sleeps while holding
 * it (wakeup.h), and it gives the lock up when another thread wants it. */
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
    /* In a job with a network: empty polls before sched_yield(), which lets the kernel do
     * its part of the network's work. Each poll of the network is a system call. */
    HVD_PROGRESS_YIELD_EVERY_NET = 3
};

struct hvd_progress {
    pthread_mutex_t lock;
    /* the floating-point environment that the driver had before; protected by lock */
    struct hvd_float_env drivers_floats;
    /* held by a waiter that found the lock taken, until it gets the lock */
    pthread_mutex_t turn;
    /* the waiter that holds `turn` wants the driver to give up the lock */
    _Atomic bool is_wanted;
    _Atomic bool thread_drives; /* the progress thread holds the lock */
    /* the time until which the progress thread sleeps; -1: until it is woken */
    _Atomic int64_t thread_wakes_ns;
    _Atomic bool stop;
    pthread_t thread;
    bool has_thread;
    /* Protected by lock. The last driver has announced that this rank sleeps, and left no
     * work undone. */
    bool is_settled;
    /* When the driver last took tensors, the cycle time then, and when it last took
     * messages. Read by any thread. */
    _Atomic int64_t tensors_ns;
    _Atomic int64_t cycle_ns;
    _Atomic int64_t p2p_ns;
};

/* Record that the driver has taken submitted tensors, or messages, so that more may come
 * soon. The times of tensors only choose the length of a timed wait: relaxed order is
 * enough. */
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

/* Returns the progress thread, which must have been started. */
static inline pthread_t hvd_progress_thread(const struct hvd_progress *progress)
{
    return progress->thread;
}

/* Returns the floating-point environment that the driver gets back when it unlocks. */
static inline struct hvd_float_env *hvd_progress_floats(struct hvd_progress *progress)
{
    return &progress->drivers_floats;
}

void hvd_progress_init(struct hvd_progress *progress);
void hvd_progress_finish(struct hvd_progress *progress);

/* Starts the progress thread, which drives when no other thread does. The caller is in
 * hvd's floating-point environment, which the thread inherits. */
int hvd_progress_start_thread(struct hvd_job *job, struct hvd_error *err);
void hvd_progress_stop_thread(struct hvd_job *job);

/* Takes the progress lock, and enters hvd's floating-point environment: no code of the
 * program may run before unlock. Unlocking lets the rank sleep: events wake it, or the
 * progress thread polls them in time. */
void hvd_progress_lock(struct hvd_job *job);
void hvd_progress_unlock(struct hvd_job *job);

/* Drives until done() returns true, another thread wants to drive, or until_ns has come
 * (-1: no limit). Returns the last answer of done(). The lock is held. */
typedef bool hvd_progress_test(const void *arg);
bool hvd_progress_drive(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                        int64_t until_ns);

/* Drives until done() returns true or until_ns has come. If another thread wants to
 * drive, this function gives it the lock and takes it back later, so the protected data
 * may have changed meanwhile. The lock is held. */
bool hvd_progress_drive_on(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                           int64_t until_ns);

/* Drives, or sleeps while another thread drives, until done() returns true or the time
 * has passed (negative: no limit). The lock is not held. done() is asked only after
 * driving or sleeping: check it before the call. */
void hvd_progress_wait(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                       int timeout_ms);

/* Polls once if no thread holds the lock. The lock is not held. */
void hvd_progress_try_poll(struct hvd_job *job);

/* Starts the messages that have been submitted if no thread holds the lock, without
 * waking another thread. Otherwise wakes the driver if it sleeps; a driver that is awake
 * checks for submissions before it unlocks. */
void hvd_progress_start_p2p(struct hvd_job *job);

#endif
