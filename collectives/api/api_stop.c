/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: signals that ask a job to stop, the answer that all ranks agree
 * on, and the exit status of a process that has stopped. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectives/api/api_start.h"
#include "gpu_binding/base/attr.h"

enum {
    WATCHED = 2
};

/* SIGTERM comes first, because hvd_should_stop prefers it. */
static const int watched[WATCHED] = {SIGTERM, SIGUSR1};

/* The signal handlers of this process. Handlers belong to the process, so this state is
 * file-scope. */
static struct {
    pthread_mutex_t lock;
    /* hvd's handler has been installed; if another one is there now, the program has
     * replaced it */
    bool is_watched[WATCHED];
    struct sigaction before[WATCHED]; /* the handlers that the program had */
    /* the process that installed them; a forked child does not ask for signals */
    _Atomic pid_t owner;
    _Atomic bool came[WATCHED]; /* the signal has arrived in this process */
} stop = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Calls the program's own handler. In a forked child, a signal without one acts as it
 * would without hvd. */
static void pass_on(const struct sigaction *before, int signal_number, siginfo_t *info,
                    void *context)
{
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(signal_number, info, context);
    } else if (before->sa_handler != SIG_DFL) {
        before->sa_handler(signal_number);
    } else if (atomic_load(&stop.owner) != getpid()) {
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* ends the child when this handler returns */
    }
}

static void on_signal(int signal_number, siginfo_t *info, void *context)
{
    bool is_rank = atomic_load(&stop.owner) == getpid();

    for (int i = 0; i < WATCHED; i++) {
        if (watched[i] == signal_number) {
            if (is_rank) {
                atomic_store(&stop.came[i], true);
            }
            pass_on(&stop.before[i], signal_number, info, context);
        }
    }
}

/* Installs hvd's handler, which calls the handler that the program had, on that handler's
 * stack and with its mask. A signal that the program ignores stays ignored. */
static int watch_signal(int which)
{
    struct sigaction now, ours;

    if (stop.is_watched[which]) {
        return 0;
    }
    if (sigaction(watched[which], NULL, &now) != 0) {
        return HVD_ERR_SYS;
    }
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN) {
        return 0;
    }
    ours = now;
    ours.sa_sigaction = on_signal;
    ours.sa_flags = (now.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO | SA_RESTART;
    stop.before[which] = now; /* before hvd's handler, which reads it, is installed */
    stop.is_watched[which] = sigaction(watched[which], &ours, NULL) == 0;
    return stop.is_watched[which] ? 0 : HVD_ERR_SYS;
}

HVD_EXPORT int hvd_stop_on_signals(void)
{
    int status = 0;

    pthread_mutex_lock(&stop.lock);
    atomic_store(&stop.owner, getpid());
    for (int i = 0; i < WATCHED && status == 0; i++) {
        status = watch_signal(i);
    }
    pthread_mutex_unlock(&stop.lock);
    return status;
}

/* Returns this rank's part of the sum over all ranks: the ranks with SIGTERM are counted
 * in the upper half, those with SIGUSR1 alone in the lower half. */
static int64_t own_part(void)
{
    if (atomic_load(&stop.came[0])) {
        return INT64_C(1) << 32;
    }
    return atomic_load(&stop.came[1]) ? 1 : 0;
}

/* Sums the ranks' parts in an allreduce; ranks that have joined contribute zeros. */
HVD_EXPORT int hvd_should_stop(struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_ALLREDUCE,
                              .word = "hvd_should_stop",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1,
                              .is_own_name = true};
    int64_t asked;
    const struct hvd_tensor tensor = {.name = HVD_RESERVED_NAMES "should_stop",
                                      .input = &asked,
                                      .output = &asked,
                                      .dtype = HVD_INT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    int status = atomic_load(&stop.owner) == getpid() ? 0 : hvd_stop_on_signals();

    if (status != 0) {
        return hvd_fail(err, status, "cannot watch SIGTERM and SIGUSR1: %m");
    }
    asked = own_part();
    status = hvd_start_submit(&start, &tensor, 1, &request, err);
    if (status != 0) {
        return status;
    }
    status = hvd_wait(request, err);
    hvd_request_free(request);
    if (status != 0 || asked == 0) {
        return status;
    }
    return watched[asked >> 32 != 0 ? 0 : 1];
}

/* --- the exit status --- */

static _Atomic int exit_status;
static _Atomic pid_t exit_owner; /* the process whose status it is; 0: none */

static void exit_with_status(void)
{
    if (atomic_load(&exit_owner) == getpid()) {
        fflush(NULL);
        _exit(atomic_load(&exit_status));
    }
}

HVD_EXPORT int hvd_set_exit_status(int status)
{
    atomic_store(&exit_status, status);
    if (atomic_exchange(&exit_owner, getpid()) == 0 && atexit(exit_with_status) != 0) {
        return HVD_ERR_NOMEM;
    }
    return 0;
}
