/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that hvdrun was started to ignore (nohup) stay ignored. */
#include "pmix_boot/hvdrun/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>

static const int handled[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                              SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2};

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int hvdrun_signals_open(sigset_t *before, struct hvd_error *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
        if (handled[i] == SIGCHLD || !is_ignored(handled[i])) {
            sigaddset(&set, handled[i]);
        }
    }
    /* An ignored SIGCHLD would take the exit status of ranks away. */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, before);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : hvd_fail(err, HVD_ERR_SYS, "cannot receive signals: %m");
}
