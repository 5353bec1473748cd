/* SPDX-License-Identifier: Apache-2.0 */
/* A delay of SIGTERM, in which a rank under srun can still say why it ends. */
#include "collectives/core/grace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/launch_env.h"

/* A signal handler belongs to the process, so this state is file-scope. */
static struct {
    pthread_mutex_t lock;
    bool is_set;
    timer_t timer; /* sends SIGTERM again; valid if is_set */
    _Atomic pid_t owner; /* the process that made the timer; a forked child has none */
} grace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Starts the timer at the first signal. Returns whether it runs. */
static bool keep_running(void)
{
    const struct itimerspec time = {.it_value.tv_sec = HVD_GRACE_S,
                                    .it_interval.tv_sec = 1};
    struct itimerspec left;

    return atomic_load(&grace.owner) == getpid() &&
           timer_gettime(grace.timer, &left) == 0 &&
           (left.it_value.tv_sec > 0 || left.it_value.tv_nsec > 0 ||
            timer_settime(grace.timer, 0, &time, NULL) == 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;

    (void)context;
    if (info->si_code == SI_TIMER || !keep_running()) {
        signal(number, SIG_DFL);
        raise(number); /* ends the process when this handler returns */
    }
    errno = error;
}

static bool is_wanted(void)
{
    struct sigaction now;

    return getenv(HVD_ENV_LAUNCH) != NULL &&
           !hvd_launch_is_elastic((const char *const *)environ) &&
           sigaction(SIGTERM, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == SIG_DFL;
}

void hvd_grace_begin(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART};

    ours.sa_sigaction = on_signal;
    pthread_mutex_lock(&grace.lock);
    if (!grace.is_set && is_wanted() &&
        timer_create(CLOCK_MONOTONIC, &event, &grace.timer) == 0) {
        atomic_store(&grace.owner, getpid());
        grace.is_set = sigaction(SIGTERM, &ours, NULL) == 0;
        if (!grace.is_set) {
            timer_delete(grace.timer);
        }
    }
    pthread_mutex_unlock(&grace.lock);
}

void hvd_grace_end(void)
{
    struct sigaction now;

    pthread_mutex_lock(&grace.lock);
    if (grace.is_set) {
        if (sigaction(SIGTERM, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
            now.sa_sigaction == on_signal) {
            signal(SIGTERM, SIG_DFL);
        }
        if (atomic_load(&grace.owner) == getpid()) {
            timer_delete(grace.timer);
        }
        grace.is_set = false;
    }
    pthread_mutex_unlock(&grace.lock);
}
