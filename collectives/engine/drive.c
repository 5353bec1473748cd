/* SPDX-License-Identifier: Apache-2.0 */
/* Who moves things on, and how it waits when nothing can move.
 *
 * While tensors are submitted one after the other, nobody is woken by each: the progress thread
 * dozes, a cycle time at a stretch (longer where it has no cpu of its own), and takes what has come,
 * unless a waiter has done so. */
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "collectives/engine/engine_state.h"
#include "gpu_binding/base/clock.h"

/* How long to spin before sleeping: waking a sleeper costs 6 to 25 us here, so that spinning
 * a few times that long loses little. Longer takes the cores from the training threads. */
static const int64_t spin_ns = 100000;

/* The same when there are not enough cpus: who spins keeps the one waited for from running. */
static const int64_t crowded_spin_ns = 20000;

/* How long after a submission to expect the next. */
static const int64_t doze_ns = 5000000;

/* Where the trainer needs the only cpu itself, moving data beside it costs more than it hides: the
 * work is left to who waits, on whatever rank, but not for longer than this. A GPU moves its data
 * itself, once it is told. */
static const int64_t crowded_doze_ns = 100000000;

/* Polls before the processor is offered to others: to the rank waited for when there are more than
 * cpus, to the kernel's part of the network. A poll of the network is a system call. */
static const unsigned yield_every = 20;
static const unsigned yield_every_net = 3;

unsigned hvd_engine_yield_every(const struct hvd_engine *engine)
{
    return engine->net != NULL ? yield_every_net : yield_every;
}

/* -1 is never. */
static int64_t soonest(int64_t one, int64_t other)
{
    return one >= 0 && (other < 0 || one < other) ? one : other;
}

/* When something is due; -1: when something happens. */
static int64_t next_deadline(const struct hvd_engine *engine)
{
    int64_t blame = soonest(
        hvd_engine_blames_at(engine),
        hvd_gpu_deadline(engine->gpu, atomic_load(&engine->waiters) > 0, hvd_clock_ns()));
    int64_t due;

    if (engine->agreement == NULL || engine->has_failed ||
        engine->phase != HVD_PHASE_RUNNING) {
        return blame;
    }
    due = hvd_agreement_deadline(engine->agreement, atomic_load(&engine->waiters) > 0,
                                 hvd_clock_ns());
    return soonest(blame, due);
}

/* Set by thread or waiter when no submission needs to ring; then the thread sleeps only until
 * doze_end. */
static bool must_doze(const struct hvd_engine *engine)
{
    return hvd_clock_ns() - atomic_load(&engine->fresh_ns) < doze_ns &&
           atomic_load(&engine->cycle_ns) > 0;
}

static int64_t doze_end(const struct hvd_engine *engine)
{
    const bool is_left = engine->thread_is_crowded && !engine->settings.has_cycle_time &&
                         !hvd_gpu_is_open(engine->gpu);
    int64_t stretch = atomic_load(&engine->cycle_ns);

    if (is_left && stretch < crowded_doze_ns) {
        stretch = crowded_doze_ns;
    }
    return hvd_clock_ns() + stretch;
}

/* Until when the progress thread sleeps. */
static int64_t plan_to_wake(struct hvd_engine *engine, bool dozes)
{
    int64_t deadline = next_deadline(engine), end = dozes ? doze_end(engine) : -1;

    return dozes && (deadline < 0 || end < deadline) ? end : deadline;
}

/* Sleeps until fd is readable or the deadline has passed (-1: there is none). */
static void sleep_until(int fd, int64_t deadline_ns)
{
    const int64_t second = 1000000000;
    struct pollfd bell = {.fd = fd, .events = POLLIN};
    int64_t left = deadline_ns - hvd_clock_ns();
    struct timespec timeout = {0};

    if (left > 0) {
        timeout.tv_sec = (time_t)(left / second);
        timeout.tv_nsec = (long)(left % second);
    }
    ppoll(&bell, 1, deadline_ns < 0 ? NULL : &timeout, NULL);
}

/* drive is held: what is true of the one who has just got it. Only the network would wake
 * the progress thread all the time: nobody else rings for one who is awake. */
static void begin_driving(struct hvd_engine *engine)
{
    hvd_float_env_enter(&engine->drivers_floats);
    if (engine->net != NULL && !engine->ignores_net) {
        hvd_engine_mute(engine, true);
    }
    hvd_engine_wake_up(engine);
}

/* The driver gives way when it sees that it is wanted. */
static void insist_on_drive(struct hvd_engine *engine)
{
    atomic_store(&engine->is_wanted, true);
    hvd_engine_ring(engine->wake);
    atomic_store(&engine->was_rung, true);
    pthread_mutex_lock(&engine->drive);
    atomic_store(&engine->is_wanted, false);
}

void hvd_engine_take_over(struct hvd_engine *engine)
{
    pthread_mutex_lock(&engine->turn);
    insist_on_drive(engine);
    pthread_mutex_unlock(&engine->turn);
    begin_driving(engine);
}

/* Unlocks drive and wakes those that sleep until then. No wake-up is lost: the driver unlocks,
 * counts, looks for sleepers; a sleeper reads the count, tries to get drive, says under mail that
 * it sleeps, and reads the count again (wait_for_driver). Either it sees the new count, or the
 * driver sees it, and gets mail only when it sleeps. */
static void let_go(struct hvd_engine *engine)
{
    pthread_mutex_unlock(&engine->drive);
    atomic_fetch_add(&engine->times_let_go, 1);
    if (atomic_load(&engine->sleepers) > 0) {
        pthread_mutex_lock(&engine->mail);
        pthread_cond_broadcast(&engine->ended);
        pthread_mutex_unlock(&engine->mail);
    }
}

void hvd_engine_hand_back(struct hvd_engine *engine)
{
    bool dozes = must_doze(engine);
    bool is_settled = hvd_engine_fall_asleep(engine, dozes);
    int64_t deadline = plan_to_wake(engine, dozes);
    int64_t thread_wakes;

    hvd_float_env_leave(&engine->drivers_floats);
    let_go(engine);
    /* Only now: a thread that has found drive taken may have muted itself, and has said
     * before until when it sleeps. */
    hvd_engine_mute(engine, false);
    thread_wakes = atomic_load(&engine->thread_wakes_ns);
    if (!is_settled || (deadline >= 0 && (thread_wakes < 0 || deadline < thread_wakes))) {
        hvd_engine_ring(engine->kick); /* now, so that the thread finds drive free */
    }
}

/* Spins until `done` says so, somebody else wants to drive, or nothing has moved for a
 * while. */
static void spin(struct hvd_engine *engine, hvd_engine_test done, const void *arg)
{
    const bool is_crowded =
        engine->thread_drives ? engine->thread_is_crowded : engine->is_crowded;
    const int64_t limit_ns = is_crowded ? crowded_spin_ns : spin_ns;
    int64_t quiet_since = hvd_clock_ns();
    unsigned polls = 0;

    while (!done(engine, arg) && !atomic_load(&engine->is_wanted)) {
        if (hvd_engine_progress(engine)) {
            quiet_since = hvd_clock_ns();
            polls = 0;
            continue;
        }
        if (engine->thread_drives && hvd_teams_are_idle(engine->teams)) {
            return; /* what can come will ring, and nobody waits for it */
        }
        polls++;
        if ((is_crowded || engine->net != NULL) &&
            polls % hvd_engine_yield_every(engine) == 0) {
            sched_yield();
        }
        if (polls % yield_every == 0 && hvd_clock_ns() - quiet_since > limit_ns) {
            return;
        }
    }
}

/* until_ns: -1 for no limit. */
static void sleep_on_inner(struct hvd_engine *engine, int64_t until_ns)
{
    int64_t deadline;

    if (!hvd_engine_fall_asleep(engine, false)) {
        return;
    }
    if (!atomic_load(&engine->thread_drives)) {
        hvd_engine_mute(engine, true);
    }
    deadline = next_deadline(engine);
    sleep_until(engine->inner, deadline < 0 || (until_ns >= 0 && until_ns < deadline)
                                   ? until_ns
                                   : deadline);
    hvd_engine_wake_up(engine);
}

static int left_ms(int64_t deadline_ns)
{
    int64_t left = deadline_ns - hvd_clock_ns();

    return left <= 0 ? 0 : (int)(left / 1000000) + 1;
}

bool hvd_engine_drive(struct hvd_engine *engine, hvd_engine_test done, const void *arg,
                      int timeout_ms)
{
    int64_t deadline = hvd_clock_ns() + (int64_t)timeout_ms * 1000000;

    for (;;) {
        spin(engine, done, arg);
        if (done(engine, arg)) {
            return true;
        }
        if (atomic_load(&engine->is_wanted) ||
            (timeout_ms >= 0 && left_ms(deadline) == 0)) {
            return false;
        }
        sleep_on_inner(engine, timeout_ms < 0 ? -1 : deadline);
    }
}

static bool has_ended(struct hvd_engine *engine, const void *arg)
{
    const struct hvd_request *request = arg;

    (void)engine;
    return atomic_load_explicit(&request->status, memory_order_acquire) != HVD_INPROGRESS;
}

static bool has_launched(struct hvd_engine *engine, const void *arg)
{
    const struct hvd_request *request = arg;

    return atomic_load(&request->is_launched) || has_ended(engine, arg);
}

/* timeout_ms from now, on the clock of engine->ended. */
static struct timespec time_after(int timeout_ms)
{
    const int64_t second = 1000000000;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (int64_t)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= second) {
        until.tv_sec++;
        until.tv_nsec -= second;
    }
    return until;
}

/* Someone else drives: sleeps until something has ended, or a driver has let go since that had
 * happened `seen` times. */
static void wait_for_driver(struct hvd_engine *engine, const struct hvd_request *request,
                            hvd_engine_test done, uint64_t seen, int timeout_ms)
{
    const struct timespec until = time_after(timeout_ms < 0 ? 0 : timeout_ms);

    pthread_mutex_lock(&engine->mail);
    atomic_fetch_add(&engine->sleepers, 1);
    if (done(engine, request) || atomic_load(&engine->times_let_go) != seen) {
        /* no need to */
    } else if (timeout_ms < 0) {
        pthread_cond_wait(&engine->ended, &engine->mail);
    } else {
        pthread_cond_timedwait(&engine->ended, &engine->mail, &until);
    }
    atomic_fetch_sub(&engine->sleepers, 1);
    pthread_mutex_unlock(&engine->mail);
}

/* Gets the drive lock unless another waiter has it; the progress thread gives it up. */
static bool try_take_over(struct hvd_engine *engine)
{
    bool taken;

    pthread_mutex_lock(&engine->turn);
    taken = pthread_mutex_trylock(&engine->drive) == 0;
    if (!taken && atomic_load(&engine->thread_drives)) {
        insist_on_drive(engine);
        taken = true;
    }
    pthread_mutex_unlock(&engine->turn);
    if (taken) {
        begin_driving(engine);
    }
    return taken;
}

static bool is_never(struct hvd_engine *engine, const void *arg)
{
    (void)engine;
    (void)arg;
    return false;
}

/* Once whoever drives has let go, or when the deadline has passed. */
static void take_back(struct hvd_engine *engine, int64_t deadline_ns)
{
    uint64_t seen = atomic_load(&engine->times_let_go);

    while (!try_take_over(engine)) {
        int left = left_ms(deadline_ns);

        if (left == 0) {
            hvd_engine_take_over(engine);
            return;
        }
        wait_for_driver(engine, NULL, is_never, seen, left);
        seen = atomic_load(&engine->times_let_go);
    }
}

bool hvd_engine_drive_on(struct hvd_engine *engine, hvd_engine_test done, const void *arg,
                         int timeout_ms)
{
    const int64_t deadline = hvd_clock_ns() + (int64_t)timeout_ms * 1000000;

    while (!hvd_engine_drive(engine, done, arg, left_ms(deadline))) {
        if (left_ms(deadline) == 0) {
            return false;
        }
        hvd_engine_hand_back(engine);
        take_back(engine, deadline);
    }
    return true;
}

static void wait_for_request(struct hvd_engine *engine, const struct hvd_request *request,
                             hvd_engine_test done, int timeout_ms)
{
    int64_t deadline = hvd_clock_ns() + (int64_t)timeout_ms * 1000000;

    while (!done(engine, request)) {
        int left = timeout_ms < 0 ? -1 : left_ms(deadline);
        uint64_t seen = atomic_load(&engine->times_let_go);

        if (left == 0) {
            return;
        }
        if (try_take_over(engine)) {
            hvd_engine_drive(engine, done, request, left);
            hvd_engine_hand_back(engine);
        } else {
            wait_for_driver(engine, request, done, seen, left);
        }
    }
}

static void wait_until(struct hvd_engine *engine, struct hvd_request *request,
                       hvd_engine_test done, int timeout_ms)
{
    atomic_store(&request->is_asked_for, true);
    atomic_fetch_add(&engine->waiters, 1);
    wait_for_request(engine, request, done, timeout_ms);
    atomic_fetch_sub(&engine->waiters, 1);
}

void hvd_engine_wait(struct hvd_engine *engine, struct hvd_request *request,
                     int timeout_ms)
{
    wait_until(engine, request, has_ended, timeout_ms);
}

void hvd_engine_wait_launched(struct hvd_engine *engine, struct hvd_request *request,
                              int timeout_ms)
{
    wait_until(engine, request, has_launched, timeout_ms);
}

void hvd_engine_poke(struct hvd_engine *engine)
{
    if (pthread_mutex_trylock(&engine->drive) == 0) {
        begin_driving(engine);
        hvd_engine_progress(engine);
        hvd_engine_hand_back(engine);
    }
}

static bool must_stop(struct hvd_engine *engine, const void *arg)
{
    (void)arg;
    return atomic_load(&engine->stop);
}

/* The progress thread has been woken while a waiter drives: what woke it is the waiter's to
 * see, and would wake it again at once. The waiter unmutes once it has given drive up; if it
 * had done so before this, drive can be had. Returns whether this thread has it. */
static bool mute_itself(struct hvd_engine *engine)
{
    hvd_engine_mute(engine, true);
    return pthread_mutex_trylock(&engine->drive) == 0;
}

/* One turn of the progress thread. Returns true when it may sleep, until thread_wakes_ns. */
static bool drive_for_nobody(struct hvd_engine *engine)
{
    bool asleep, dozes;

    pthread_mutex_lock(&engine->turn); /* a waiter that wants to drive goes first */
    pthread_mutex_unlock(&engine->turn);
    atomic_store(&engine->thread_wakes_ns, must_doze(engine) ? doze_end(engine) : -1);
    if (pthread_mutex_trylock(&engine->drive) != 0 && !mute_itself(engine)) {
        return true; /* a waiter drives; it leaves things settled or kicks */
    }
    hvd_engine_mute(engine, false);
    atomic_store(&engine->thread_drives, true);
    hvd_engine_wake_up(engine);
    spin(engine, must_stop, NULL);
    dozes = must_doze(engine);
    asleep = hvd_engine_fall_asleep(engine, dozes);
    atomic_store(&engine->thread_wakes_ns, plan_to_wake(engine, dozes));
    atomic_store(&engine->thread_drives, false);
    let_go(engine);
    return asleep;
}

void *hvd_engine_thread(void *arg)
{
    struct hvd_engine *engine = arg;

    for (;;) {
        /* In this order: who stops us says so first and kicks then. */
        hvd_engine_silence(engine->kick);
        if (atomic_load(&engine->stop)) {
            break;
        }
        if (drive_for_nobody(engine)) {
            sleep_until(engine->outer, atomic_load(&engine->thread_wakes_ns));
        }
    }
    return NULL;
}
