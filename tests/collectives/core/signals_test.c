/* SPDX-License-Identifier: Apache-2.0 */
/* A program blocks a signal and waits for it, as is usual with Slurm's --signal. It must
 * get the signal: no thread of hvd, or of a library that hvd uses, takes it. Runs as each
 * rank of a job; rank 0 prints TAP. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    LIMIT_S = 60, /* far above what a loaded machine needs */
    COUNT = 1 << 18,
};

static const int asked_for[] = {SIGHUP,  SIGINT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGCHLD, SIGALRM, SIGCONT};

static float values[COUNT];

static void add_up(void)
{
    const int64_t shape[] = {COUNT};
    struct hvd_tensor tensor =
        call_tensor("values", HVD_FLOAT32, shape, 1, values, values);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
}

/* Returns the signals that a thread of this process blocks: bit N - 1 for signal N. */
static unsigned long long blocked_by(const char *thread)
{
    unsigned long long mask = 0;
    char line[256];
    FILE *file;

    snprintf(line, sizeof(line), "/proc/self/task/%.32s/status", thread);
    file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            mask = strtoull(line + 7, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return mask;
}

/* Returns the number of threads besides this one. *takers: the number of those that do
 * not block all signals of asked_for. */
static int count_threads(int *takers)
{
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *item;
    int count = 0;

    *takers = 0;
    while (folder != NULL && (item = readdir(folder)) != NULL) {
        unsigned long long mask = blocked_by(item->d_name);
        bool takes = false;

        if (item->d_name[0] == '.' || atoi(item->d_name) == (int)gettid()) {
            continue;
        }
        for (size_t i = 0; i < sizeof(asked_for) / sizeof(asked_for[0]); i++) {
            takes |= (mask >> (asked_for[i] - 1) & 1) == 0;
        }
        count++;
        *takers += takes ? 1 : 0;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* Blocks SIGUSR1 in this thread and sends it to the process. Returns whether this thread
 * gets it: the kernel gives it to any thread that does not block it. */
static bool gets_signal(void)
{
    const struct timespec limit = {.tv_sec = LIMIT_S};
    sigset_t awaited;

    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    kill(getpid(), SIGUSR1);
    return sigtimedwait(&awaited, NULL, &limit) == SIGUSR1;
}

int main(void)
{
    int rank = call_init(), threads, takers, found[2];
    sigset_t mask;

    add_up();
    threads = count_threads(&takers);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    found[0] = threads > 0 && takers == 0 && !sigismember(&mask, SIGUSR1);
    found[1] = gets_signal();
    add_up();
    if (rank == 0) {
        tap_ok(found[0],
               "%d of hvd's %d threads take the program's signals, and the program does",
               takers, threads);
        tap_ok(found[1], "a signal that the program has blocked is left to the program");
    }
    call_barrier();
    hvd_shutdown();
    return rank == 0 ? tap_done() : !(found[0] && found[1]);
}
