/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that drives this rank, and how it waits when nothing can move.
 *
 * While tensors are submitted one after the other, submissions wake no thread. The
 * progress thread waits for one cycle time (longer if it has no CPU of its own), then
 * takes the tensors that have come, unless a waiter has taken them.
 *
 * During such a timed wait, if no batch is running, the progress thread does not listen
 * to the network: a message only tells that another rank has begun what this rank is
 * about to submit. If the message woke the thread, it would compete with the caller for
 * the CPU. */
#include "collectives/core/progress.h"

#include <sched.h>
#include <string.h>

#include "collectives/core/job_state.h"
#include "collectives/core/p2p_source.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/mail.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/thread.h"

/* How long to spin before sleeping. Waking a sleeper takes 6 to 25 us on the machine
 * measured, so spinning a few times longer loses little. More would take the cores from
 * the training threads. */
static const int64_t spin_ns = 100000;

/* How long to spin when there are fewer CPUs than threads, because a spinning thread then
 * keeps the thread that it waits for from running. */
static const int64_t crowded_spin_ns = 20000;

/* How long after a submission another one is expected. */
static const int64_t wait_ns = 5000000;

/* The longest timed wait when the program itself needs this rank's only CPU. Moving data
 * beside the program would then cost more than it hides, so the work is left to threads
 * that wait for a request, on any rank. Not used with GPUs, which move data themselves
 * once work is launched. */
static const int64_t crowded_wait_ns = 100000000;

/* How many empty polls come before sched_yield(), which lets the awaited rank run if
 * there are more ranks than CPUs. With a network, it is
 * HVD_PROGRESS_YIELD_EVERY_NET (progress.h). */
static const unsigned yield_every = 20;

/* How often the progress thread checks for new messages while the program starts sends
 * and receives one after the other. It need not check more often, because usually a
 * waiter has already taken them. A rank answers a message in 1.5 us, but in 7 us if the
 * message has to wake it. */
static const int64_t p2p_wait_ns = 1000000;

/* A waiter whose request has ended leaves without a last poll if the progress thread
 * polls within this time. Messages of other ranks may have to wait for that. In a job
 * whose only collectives are those of all ranks, no rank can continue before this one
 * calls again; there, the progress thread may finish its longer timed wait. */
static const int64_t unlooked_ns = 1000000;

/* Returns the end of the progress thread's timed wait for tensors, during which
 * submissions need not wake it; -1: no timed wait. */
static int64_t tensors_wait_end(const struct hvd_job *job, int64_t now_ns)
{
    const bool is_left = hvd_oversubscription_of_threads(&job->oversubscription) &&
                         !job->settings.has_cycle_time && !hvd_gpu_is_open(job->gpu);
    int64_t stretch = atomic_load(&job->progress.cycle_ns);

    if (stretch == 0 || now_ns - atomic_load(&job->progress.tensors_ns) >= wait_ns) {
        return -1;
    }
    if (is_left && stretch < crowded_wait_ns) {
        stretch = crowded_wait_ns;
    }
    return now_ns + stretch;
}

static struct hvd_timed_wait wait_of(const struct hvd_job *job)
{
    const int64_t now_ns = hvd_clock_ns();
    const int64_t used_ns = atomic_load(&job->progress.p2p_ns);
    struct hvd_timed_wait wait = {.now_ns = now_ns,
                                  .end_ns = tensors_wait_end(job, now_ns)};

    if (used_ns != 0 && now_ns - used_ns < wait_ns) {
        wait.is_for_p2p = true;
        if (wait.end_ns < 0 || wait.end_ns > now_ns + p2p_wait_ns) {
            wait.end_ns = now_ns + p2p_wait_ns;
        }
    }
    return wait;
}

static bool has_come(int64_t until_ns)
{
    return until_ns >= 0 && hvd_clock_ns() >= until_ns;
}

/* Prepares the thread that has just taken the lock for driving. Mutes the progress thread
 * if the network could wake it; no other source signals a rank that is awake. */
static void begin_driving(struct hvd_job *job)
{
    hvd_float_env_enter(&job->progress.drivers_floats);
    if (job->net != NULL && !hvd_wakeup_ignore_net(&job->wakeup)) {
        hvd_wakeup_suppress(&job->wakeup, true);
    }
    hvd_wakeup_end_sleep(&job->wakeup);
}

/* Takes the lock from the driver, which gives it up when is_wanted is set. */
static void lock_from_thread(struct hvd_job *job)
{
    atomic_store(&job->progress.is_wanted, true);
    hvd_wakeup_notify(&job->wakeup);
    pthread_mutex_lock(&job->progress.lock);
    atomic_store(&job->progress.is_wanted, false);
}

void hvd_progress_lock(struct hvd_job *job)
{
    pthread_mutex_lock(&job->progress.turn);
    lock_from_thread(job);
    pthread_mutex_unlock(&job->progress.turn);
    begin_driving(job);
}

/* Announces that the rank sleeps, and settles all sources. Returns false, with the rank
 * awake again, if there is something to do. */
static bool settle_to_sleep(struct hvd_job *job, const struct hvd_timed_wait *wait)
{
    hvd_wakeup_announce_sleep(&job->wakeup, wait->end_ns >= 0);
    job->progress.is_settled = hvd_loop_settle(&job->loop, wait);
    if (!job->progress.is_settled) {
        hvd_wakeup_end_sleep(&job->wakeup);
    }
    return job->progress.is_settled;
}

/* Gives the lock up. A thread that could not get the lock, and found no sleeper to wake,
 * has left its message in the queue, perhaps after our last check: check once more. */
static void release_lock(struct hvd_job *job)
{
    hvd_waiters_let_go(&job->waiters, &job->progress.lock);
    if (hvd_submissions_has_p2p(&job->submissions)) {
        hvd_wakeup_notify_thread(&job->wakeup);
    }
}

/* Whether the progress thread polls by deadline_ns: it is awake, or wakes up in time.
 * Always true if deadline_ns is -1. */
static bool thread_looks_by(const struct hvd_job *job, int64_t deadline_ns)
{
    const int64_t thread_wakes_ns = atomic_load(&job->progress.thread_wakes_ns);

    return deadline_ns < 0 || (thread_wakes_ns >= 0 && thread_wakes_ns <= deadline_ns);
}

/* Gives the lock up, and makes the progress thread poll by the deadline, or at once.
 * Reads thread_wakes_ns only after unlocking: a progress thread that found the lock taken
 * may have muted itself, but has stored that time before. Notifies the thread last, so
 * that it finds the lock free. */
static void leave_to_thread(struct hvd_job *job, bool at_once, int64_t deadline_ns)
{
    hvd_float_env_leave(&job->progress.drivers_floats);
    release_lock(job);
    hvd_wakeup_suppress(&job->wakeup, false);
    if (at_once || !thread_looks_by(job, deadline_ns)) {
        hvd_wakeup_notify_thread(&job->wakeup);
    }
}

void hvd_progress_unlock(struct hvd_job *job)
{
    const struct hvd_timed_wait wait = wait_of(job);

    const bool is_settled = settle_to_sleep(job, &wait);

    leave_to_thread(job, !is_settled,
                    hvd_loop_deadline(&job->loop, wait.end_ns, wait.now_ns));
}

/* Whether requests of this rank are in flight or submitted, or data waits to be sent. */
static bool has_requests(const struct hvd_job *job)
{
    return hvd_loop_works(&job->loop) ||
           hvd_submissions_are_under_way(&job->submissions) ||
           (hvd_p2p_source_is_open(&job->p2p_source) &&
            hvd_p2p_source_has_pending(job)) ||
           hvd_mail_control_waits(job->mail) ||
           (job->net != NULL && hvd_net_is_sending(job->net));
}

/* Whether other ranks may continue before this rank's next call if its progress thread
 * answers them. */
static bool may_hold_up(const struct hvd_job *job)
{
    return hvd_negotiation_has_other_sets(&job->negotiation) ||
           hvd_p2p_source_is_open(&job->p2p_source);
}

/* Gives the lock up after a wait. If this rank has no requests, submissions need not wake
 * any thread, and the progress thread polls soon, then unlocking is enough: the rank
 * neither announces sleep nor polls for earlier events. */
static void unlock_after_wait(struct hvd_job *job)
{
    const struct hvd_timed_wait wait = wait_of(job);
    const int64_t most_ns =
        wait.now_ns + (may_hold_up(job) ? unlooked_ns : crowded_wait_ns);
    int64_t deadline_ns = wait.end_ns < most_ns ? wait.end_ns : most_ns;

    if (deadline_ns >= 0 && !has_requests(job)) {
        deadline_ns = hvd_loop_deadline(&job->loop, deadline_ns, wait.now_ns);
        if (thread_looks_by(job, deadline_ns)) {
            job->progress.is_settled = false;
            leave_to_thread(job, false, deadline_ns);
            return;
        }
    }
    hvd_progress_unlock(job);
}

/* Polls until done() returns true, another thread wants to drive, or nothing has moved
 * for a while. Returns the last answer of done(), which may cost a system call and is not
 * asked again. */
static bool spin_until(struct hvd_job *job, hvd_progress_test *done, const void *arg)
{
    const bool is_crowded = job->progress.thread_drives
                                ? hvd_oversubscription_of_threads(&job->oversubscription)
                                : hvd_oversubscription_of_ranks(&job->oversubscription);
    const int64_t limit_ns = is_crowded ? crowded_spin_ns : spin_ns;
    /* Short waits do not read the clock, unless others need the CPU. */
    const unsigned first_look = is_crowded ? 1 : yield_every;
    int64_t quiet_since = 0;
    unsigned polls = 0; /* since something last moved */

    while (!done(arg)) {
        if (atomic_load(&job->progress.is_wanted)) {
            return false;
        }
        if (hvd_loop_poll(&job->loop)) {
            polls = 0;
            continue;
        }
        if (job->progress.thread_drives && !hvd_loop_works(&job->loop)) {
            return false; /* no thread waits, and every event wakes this thread: sleep */
        }
        polls++;
        if (job->net != NULL ? polls % HVD_PROGRESS_YIELD_EVERY_NET == 0
                             : is_crowded && polls % yield_every == 0) {
            sched_yield();
        }
        if (polls == first_look) {
            quiet_since = hvd_clock_ns();
        } else if (polls % yield_every == 0 && hvd_clock_ns() - quiet_since > limit_ns) {
            return false;
        }
    }
    return true;
}

/* Lets the driver sleep until an event or until_ns (-1: no limit). */
static void sleep_as_driver(struct hvd_job *job, int64_t until_ns)
{
    const struct hvd_timed_wait none = {.now_ns = hvd_clock_ns(), .end_ns = -1};

    if (!settle_to_sleep(job, &none)) {
        return;
    }
    if (!atomic_load(&job->progress.thread_drives)) {
        hvd_wakeup_suppress(&job->wakeup, true);
    }
    hvd_live_write(job, none.now_ns);
    hvd_wakeup_sleep(&job->wakeup,
                     hvd_loop_deadline(&job->loop, until_ns, hvd_clock_ns()));
    hvd_wakeup_end_sleep(&job->wakeup);
}

bool hvd_progress_drive(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                        int64_t until_ns)
{
    while (!spin_until(job, done, arg)) {
        if (atomic_load(&job->progress.is_wanted) || has_come(until_ns)) {
            return false;
        }
        sleep_as_driver(job, until_ns);
    }
    return true;
}

/* Takes the progress lock unless another waiter holds it; the progress thread gives it
 * up. Waits for `turn` only if the lock is held or wanted. */
static bool try_lock(struct hvd_job *job)
{
    bool taken = !atomic_load(&job->progress.is_wanted) &&
                 pthread_mutex_trylock(&job->progress.lock) == 0;

    if (!taken) {
        pthread_mutex_lock(&job->progress.turn);
        taken = pthread_mutex_trylock(&job->progress.lock) == 0;
        if (!taken && atomic_load(&job->progress.thread_drives)) {
            lock_from_thread(job);
            taken = true;
        }
        pthread_mutex_unlock(&job->progress.turn);
    }
    if (taken) {
        begin_driving(job);
    }
    return taken;
}

static bool is_never(const void *arg)
{
    (void)arg;
    return false;
}

/* Takes the lock again after the driver has unlocked, or when until_ns has come. */
static void lock_again(struct hvd_job *job, int64_t until_ns)
{
    uint64_t seen = hvd_waiters_times_let_go(&job->waiters);

    while (!try_lock(job)) {
        if (has_come(until_ns)) {
            hvd_progress_lock(job);
            return;
        }
        hvd_waiters_sleep(&job->waiters, is_never, NULL, seen, until_ns);
        seen = hvd_waiters_times_let_go(&job->waiters);
    }
}

bool hvd_progress_drive_on(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                           int64_t until_ns)
{
    while (!hvd_progress_drive(job, done, arg, until_ns)) {
        if (has_come(until_ns)) {
            return false;
        }
        hvd_progress_unlock(job);
        lock_again(job, until_ns);
    }
    return true;
}

void hvd_progress_wait(struct hvd_job *job, hvd_progress_test *done, const void *arg,
                       int timeout_ms)
{
    const int64_t until_ns =
        timeout_ms < 0 ? -1 : hvd_clock_ns() + (int64_t)timeout_ms * 1000000;
    bool is_done = false;

    hvd_waiters_count(&job->waiters, 1);
    while (!is_done && !has_come(until_ns)) {
        uint64_t seen = hvd_waiters_times_let_go(&job->waiters);

        if (try_lock(job)) {
            is_done = hvd_progress_drive(job, done, arg, until_ns);
            unlock_after_wait(job);
        } else {
            hvd_waiters_sleep(&job->waiters, done, arg, seen, until_ns);
            is_done = done(arg);
        }
    }
    hvd_waiters_count(&job->waiters, -1);
}

void hvd_progress_try_poll(struct hvd_job *job)
{
    if (pthread_mutex_trylock(&job->progress.lock) == 0) {
        begin_driving(job);
        hvd_loop_poll(&job->loop);
        unlock_after_wait(job);
    }
}

/* Whether the progress thread needs no notification after a message. It needs none if it
 * wakes up by itself: it sleeps until a time that it has set since the last message. It
 * sets that time before it tries to get the lock, so it cannot sleep longer unseen. */
static bool is_thread_due(const struct hvd_job *job)
{
    return atomic_load(&job->progress.thread_wakes_ns) >
           atomic_load(&job->progress.p2p_ns);
}

/* The progress thread may have been notified while this function held the lock, and have
 * found it taken. So everything that the thread would have polled is polled here. */
void hvd_progress_start_p2p(struct hvd_job *job)
{
    int64_t deadline_ns = -1;

    if (pthread_mutex_trylock(&job->progress.lock) != 0) {
        hvd_wakeup_notify_sleeper(&job->wakeup);
        return;
    }
    hvd_float_env_enter(&job->progress.drivers_floats);
    hvd_p2p_source_start(job);
    if (!job->progress.is_settled || hvd_p2p_source_is_moving(job) ||
        !is_thread_due(job) || hvd_p2p_source_is_copying(job) ||
        hvd_p2p_source_has_failed(job)) {
        const struct hvd_timed_wait wait = wait_of(job);

        settle_to_sleep(job, &wait);
        deadline_ns = hvd_loop_deadline(&job->loop, wait.end_ns, wait.now_ns);
    }
    leave_to_thread(job, !job->progress.is_settled, deadline_ns);
}

static bool must_stop(const void *arg)
{
    const struct hvd_job *job = arg;

    return atomic_load(&job->progress.stop);
}

/* Drives once as the progress thread. Returns true if the thread may sleep until
 * thread_wakes_ns. */
static bool drive_as_thread(struct hvd_job *job)
{
    struct hvd_timed_wait wait;
    bool asleep;

    pthread_mutex_lock(&job->progress.turn); /* a waiter that wants to drive goes first */
    pthread_mutex_unlock(&job->progress.turn);
    atomic_store(&job->progress.thread_wakes_ns, wait_of(job).end_ns);
    if (pthread_mutex_trylock(&job->progress.lock) != 0) {
        /* Some waiter drives. It also handles the event that has woken this thread, but
         * the event would wake this thread again at once: mute it. The waiter unmutes it
         * after giving up the lock. If the waiter did so just before this line, the lock
         * is free now: try once more. Otherwise the waiter leaves no work undone, or
         * notifies this thread. */
        hvd_wakeup_suppress(&job->wakeup, true);
        if (pthread_mutex_trylock(&job->progress.lock) != 0) {
            return true;
        }
    }
    hvd_wakeup_suppress(&job->wakeup, false);
    atomic_store(&job->progress.thread_drives, true);
    hvd_wakeup_drain(&job->wakeup);
    hvd_wakeup_end_sleep(&job->wakeup);
    spin_until(job, must_stop, job);
    wait = wait_of(job);
    asleep = settle_to_sleep(job, &wait);
    if (asleep) {
        hvd_live_write(job, wait.now_ns);
    }
    atomic_store(&job->progress.thread_wakes_ns,
                 hvd_loop_deadline(&job->loop, wait.end_ns, wait.now_ns));
    atomic_store(&job->progress.thread_drives, false);
    release_lock(job);
    return asleep;
}

static void *run_thread(void *arg)
{
    struct hvd_job *job = arg;

    /* Checked after each sleep: the thread that stops this one sets `stop` before it
     * notifies. */
    while (!atomic_load(&job->progress.stop)) {
        if (drive_as_thread(job)) {
            hvd_wakeup_sleep_idle(&job->wakeup,
                                  atomic_load(&job->progress.thread_wakes_ns));
        }
    }
    return NULL;
}

void hvd_progress_init(struct hvd_progress *progress)
{
    pthread_mutex_init(&progress->lock, NULL);
    pthread_mutex_init(&progress->turn, NULL);
}

void hvd_progress_finish(struct hvd_progress *progress)
{
    pthread_mutex_destroy(&progress->lock);
    pthread_mutex_destroy(&progress->turn);
}

int hvd_progress_start_thread(struct hvd_job *job, struct hvd_error *err)
{
    int error = hvd_thread_start(&job->progress.thread, run_thread, job);

    if (error != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot start the progress thread: %s",
                        strerror(error));
    }
    job->progress.has_thread = true;
    return 0;
}

void hvd_progress_stop_thread(struct hvd_job *job)
{
    if (job->progress.has_thread) {
        atomic_store(&job->progress.stop, true);
        hvd_wakeup_notify_thread(&job->wakeup);
        pthread_join(job->progress.thread, NULL);
    }
}
