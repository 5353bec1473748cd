/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is reset while the tree is built is made again, or every rank learns
 * why the job ends: none waits for the time limit. In turn, each read or write of each
 * rank resets the connection that it is about.
 *
 * The clock of the ranks stands still except in short pauses. So a rank has all the time
 * that it needs to connect again, on any machine, and a rank that waits for the time
 * limit waits for ever. */
#include <errno.h>
#include <poll.h>
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
    /* longer than a pause between two attempts to connect, but shorter than any wait for
     * another rank */
    PAUSE_MS = 100,
    HANG_MS = 60000, /* a rank that has said nothing for so long hangs */
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

static bool is_still; /* the clock advances by passed_ms only */
static int64_t still_ms, passed_ms;

int64_t __real_hvd_clock_ms(void);
int64_t __wrap_hvd_clock_ms(void);

int64_t __wrap_hvd_clock_ms(void)
{
    return is_still ? still_ms + passed_ms : __real_hvd_clock_ms();
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = timeout_ms % 1000 * 1000000L};
    const int ready = ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);

    if (ready == 0 && timeout_ms <= PAUSE_MS) {
        passed_ms += timeout_ms;
    }
    return ready;
}

struct plan {
    int victim;
    int call; /* the read or write of the victim that resets its connection */
};

/* Says whether there was a reset, and "up" or the error. */
static int connect_and_tell(struct job_rank *self, const void *argument)
{
    const struct plan *plan = argument;
    const bool is_victim = self->boot.rank == plan->victim;
    struct seen seen;
    int status = rank_meet(self, &seen);
    bool has_reset;

    until_reset = is_victim ? plan->call : 0;
    still_ms = hvd_clock_ms();
    is_still = true;
    if (status == 0) {
        status = rank_join(self, &seen, CONNECT_MS);
    }
    is_still = false;
    has_reset = is_victim && until_reset == 0;
    until_reset = 0;
    job_say(self, "%s %s", has_reset ? "reset" : "-", status == 0 ? "up" : seen.err.text);
    job_await(self);
    rank_leave(&seen);
    return 0;
}

struct outcome {
    bool has_reset; /* a connection was reset */
    bool is_root_up; /* GO was sent */
    int up; /* the number of ranks that came up */
};

/* Runs a job. Returns whether no rank hangs. */
static bool run_job(const char *hosts, const struct plan *plan, struct outcome *outcome)
{
    struct job job;
    bool hangs = false;

    job_start(&job, hosts, connect_and_tell, plan);
    job_serve_exchange(&job);
    *outcome = (struct outcome){0};
    for (int rank = 0; rank < job.size; rank++) {
        char line[JOB_LINE_BYTES] = "";
        bool is_up;

        hangs = !job_hear(&job, rank, hangs ? 0 : HANG_MS, line) || hangs;
        is_up = strcmp(line, "- up") == 0 || strcmp(line, "reset up") == 0;
        outcome->has_reset = strncmp(line, "reset ", 6) == 0 || outcome->has_reset;
        outcome->is_root_up = (rank == 0 && is_up) || outcome->is_root_up;
        outcome->up += is_up;
        tap_note("rank %d, call %d, rank %d: %s", plan->victim, plan->call, rank, line);
    }
    for (int rank = 0; rank < job.size; rank++) {
        if (hangs) {
            job_kill(&job, rank);
        } else {
            job_signal(&job, rank);
        }
    }
    return job_finish(&job) && !hangs;
}

/* Resets the connections of one rank, in one job after the other, until the tree is up
 * before the reset comes. */
static void resets_end_well(const char *hosts, int size, int victim)
{
    struct plan plan = {.victim = victim};
    struct outcome outcome = {.has_reset = true};
    bool is_good = true, is_go_sent = true;
    int jobs = 0, whole = 0;

    while (is_good && outcome.has_reset && plan.call < MOST_CALLS) {
        plan.call++;
        is_good = run_job(hosts, &plan, &outcome);
        is_go_sent = is_go_sent && outcome.is_root_up;
        whole += outcome.has_reset && outcome.up == size;
        jobs += outcome.has_reset;
    }
    tap_ok(is_good && !outcome.has_reset,
           "hosts %s: no reset of a connection of rank %d leaves a rank waiting", hosts,
           victim);
    /* A reset of the last message, GO, comes too late to connect again. */
    tap_ok(is_go_sent && whole > jobs / 2,
           "and all ranks connect again, unless GO was sent: after %d of %d resets",
           whole, jobs);
}

int main(void)
{
    resets_end_well("a b", 2, 0);
    resets_end_well("a b", 2, 1);
    resets_end_well("a a b b", 4, 2);
    resets_end_well("a b c d e f g h i j k l", 12, 1);
    return tap_done();
}
