/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is reset while the tree is built is made again, or every rank learns
 * soon why the job ends: none waits for the time limit. In turn, each read or write of
 * each rank resets the connection that it is about. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    /* enough on a slow machine, and far below CONNECT_MS, after which ranks give up */
    NOTICE_MS = 20000,
    MOST_CALLS = 40, /* far more than a rank makes until the tree is up */
};

/* Number of reads and writes of TCP connections until one is reset; 0: none will be. */
static int until_reset;

static bool reset_now(int fd)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    int domain = 0;
    socklen_t bytes = sizeof(domain);

    if (until_reset == 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 ||
        domain == AF_UNIX || --until_reset > 0) {
        return false;
    }
    (void)connect(fd, &nowhere, sizeof(nowhere));
    errno = ECONNRESET;
    return true;
}

/* The functions of libc call the kernel: these reset connections first. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return reset_now(fd) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return reset_now(fd) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

struct plan {
    int victim;
    int call; /* the read or write of the victim that resets its connection */
};

/* Says "up" or the error, how long that took, and whether there was a reset. */
static int connect_and_tell(struct job_rank *self, const void *argument)
{
    const struct plan *plan = argument;
    const int64_t begin_ms = hvd_clock_ms();
    const bool is_victim = self->boot.rank == plan->victim;
    struct seen seen;
    int status = rank_meet(self, &seen);
    bool has_reset;

    until_reset = is_victim ? plan->call : 0;
    if (status == 0) {
        status = rank_join(self, &seen, CONNECT_MS);
    }
    has_reset = is_victim && until_reset == 0;
    until_reset = 0;
    job_say(self, "%lld %s%s", (long long)(hvd_clock_ms() - begin_ms),
            has_reset ? "reset " : "", status == 0 ? "up" : seen.err.text);
    job_await(self);
    rank_leave(&seen);
    return 0;
}

/* Runs a job. Returns how many of its ranks came up, or -1 if one was late. *has_reset
 * tells whether a connection was reset. */
static int run_job(const char *hosts, const struct plan *plan, bool *has_reset)
{
    struct job job;
    int up = 0;
    bool is_late = false;

    job_start(&job, hosts, connect_and_tell, plan);
    job_serve_exchange(&job);
    *has_reset = false;
    for (int rank = 0; rank < job.size; rank++) {
        char line[JOB_LINE_BYTES] = "";

        is_late = !job_hear(&job, rank, NOTICE_MS, line) || is_late;
        up += strstr(line, " up") != NULL;
        *has_reset = strstr(line, " reset ") != NULL || *has_reset;
        tap_note("rank %d, call %d, rank %d: %s", plan->victim, plan->call, rank, line);
    }
    for (int rank = 0; rank < job.size; rank++) {
        job_signal(&job, rank);
    }
    return job_finish(&job) && !is_late ? up : -1;
}

/* Resets the connections of one rank, in one job after the other, until the tree is up
 * before the reset comes. */
static void resets_end_well(const char *hosts, int size, int victim)
{
    struct plan plan = {.victim = victim};
    bool has_reset = true, is_good = true;
    int jobs = 0, whole = 0;

    while (has_reset && plan.call < MOST_CALLS) {
        int up;

        plan.call++;
        up = run_job(hosts, &plan, &has_reset);
        is_good = up >= 0 && is_good;
        whole += has_reset && up == size;
        jobs += has_reset;
    }
    tap_ok(is_good && !has_reset,
           "hosts %s: no reset of a connection of rank %d leaves a rank waiting", hosts,
           victim);
    /* A reset of the last message, GO, comes too late to connect again. */
    tap_ok(whole > jobs / 2, "and after %d of %d resets, all ranks connect again", whole,
           jobs);
}

int main(void)
{
    resets_end_well("a b", 2, 0);
    resets_end_well("a b", 2, 1);
    resets_end_well("a a b b", 4, 2);
    resets_end_well("a b c d e f g h i j k l", 12, 1);
    return tap_done();
}
