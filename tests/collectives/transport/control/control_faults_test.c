/* SPDX-License-Identifier: Apache-2.0 */
/* When a rank dies, every other rank learns which rank it was, and on which host. When
 * all ranks leave as agreed, none reports a death. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/control/control_protocol.h"
#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    /* enough on a slow machine, and far below PATIENCE_MS, after which ranks give up */
    NOTICE_MS = 20000,
    PATIENCE_MS = 60000
};

/* A rank that reports "ready" once it has sent READY; NULL in other ranks. */
static struct job_rank *reporter;

/* libc's function calls the kernel: this one also reports the message. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    uint32_t head[2] = {0};

    if (reporter != NULL && message->msg_iov[0].iov_len >= sizeof(head)) {
        memcpy(head, message->msg_iov[0].iov_base, sizeof(head));
    }
    if (head[1] == HVD_CONTROL_TYPE_READY) {
        job_say(reporter, "ready");
    }
    return sent;
}

/* Reports "up" and waits for a signal of the test. Then reports the abort that arrives
 * and how long that took. */
static int watch(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_connect(self, &seen, CONNECT_MS);
    int64_t begin_ms;

    (void)argument;
    if (status == 0 && rank_sum(&seen, self, 1) != self->boot.size) {
        status = 2;
    }
    job_say(self, status == 0 ? "up" : "down %s", seen.err.text);
    job_await(self);
    begin_ms = hvd_clock_ms();
    rank_run(&seen, rank_has_abort, PATIENCE_MS);
    job_say(self, "%lld %s", (long long)(hvd_clock_ms() - begin_ms), seen.text);
    hvd_control_destroy(seen.control, 2000);
    free(seen.payload);
    return seen.aborts == 1 ? status : 3;
}

static bool start_watch(struct job *job, const char *hosts, job_body body)
{
    char line[JOB_LINE_BYTES];
    bool is_up = true;

    job_start(job, hosts, body, NULL);
    job_serve_exchange(job);
    for (int i = 0; i < job->size; i++) {
        is_up =
            job_hear(job, i, PATIENCE_MS, line) && strncmp(line, "up", 2) == 0 && is_up;
    }
    return is_up;
}

/* Returns whether all ranks except the victim learn in time of an abort whose text begins
 * with `wanted`. */
static bool all_learn(struct job *job, int victim, const char *wanted)
{
    bool is_good = true;

    for (int i = 0; i < job->size; i++) {
        char line[JOB_LINE_BYTES] = "";
        char *text = line;

        if (i == victim) {
            continue;
        }
        if (!job_hear(job, i, PATIENCE_MS + 5000, line) ||
            strtol(line, &text, 10) > NOTICE_MS || text == line ||
            strncmp(text + 1, wanted, strlen(wanted)) != 0) {
            tap_note("rank %d: %s", i, line);
            is_good = false;
        }
    }
    return is_good;
}

static void killed_rank_is_named(const char *hosts, int victim, const char *host)
{
    struct job job;
    char wanted[128];
    bool is_good = start_watch(&job, hosts, watch);

    snprintf(wanted, sizeof(wanted), "rank %d on %s died", victim, host);
    for (int i = 0; i < job.size; i++) {
        if (i != victim) {
            job_signal(&job, i);
        }
    }
    job_kill(&job, victim);
    is_good = all_learn(&job, victim, wanted) && is_good;
    is_good = job_finish(&job) && is_good;
    tap_ok(is_good, "hosts %s: all other ranks learn that rank %d on %s was killed",
           hosts, victim, host);
}

/* Forks a worker, as data loaders do. The worker of rank 0 aborts and destroys its copy
 * of the control network; other workers do nothing. */
static int watch_with_worker(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_connect(self, &seen, CONNECT_MS);
    pid_t worker;

    (void)argument;
    status = status == 0 && rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    worker = fork();
    if (worker == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(PATIENCE_MS / 1000);
        if (self->boot.rank == 0) {
            hvd_control_abort(seen.control, 0, "of no interest");
            hvd_control_destroy(seen.control, 1000);
        }
        pause();
        _exit(0);
    }
    /* proves that the workers have not disturbed any rank */
    status = status == 0 && rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    job_say(self, status == 0 ? "up %d" : "down %d", (int)worker);
    job_await(self);
    rank_run(&seen, rank_has_abort, PATIENCE_MS);
    job_say(self, "0 %s", seen.text);
    kill(worker, SIGKILL);
    hvd_control_destroy(seen.control, 2000);
    free(seen.payload);
    return seen.aborts == 1 ? status : 3;
}

static void forked_workers_hide_no_death(void)
{
    struct job job;
    char line[JOB_LINE_BYTES];
    int workers[4] = {0};
    int64_t begin_ms;
    bool is_good = true;

    job_start(&job, "a a b b", watch_with_worker, NULL);
    job_serve_exchange(&job);
    for (int i = 0; i < job.size; i++) {
        is_good = job_hear(&job, i, PATIENCE_MS, line) &&
                  sscanf(line, "up %d", &workers[i]) == 1 && is_good;
    }
    tap_ok(is_good, "a forked worker that cleans up does not disturb its rank");
    for (int i = 0; i < job.size; i++) {
        if (i != 2) {
            job_signal(&job, i);
        }
    }
    begin_ms = hvd_clock_ms();
    job_kill(&job, 2);
    is_good = all_learn(&job, 2, "rank 2 on b died");
    is_good = hvd_clock_ms() - begin_ms < NOTICE_MS && is_good;
    tap_ok(kill(workers[2], 0) == 0 && is_good,
           "a forked worker that outlives its rank does not hide its death");
    kill(workers[2], SIGKILL);
    job_finish(&job);
}

static int give_up(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_connect(self, &seen, CONNECT_MS);

    (void)argument;
    status = status == 0 && rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    job_say(self, "up");
    if (self->boot.rank == 3) {
        /* wait, because an abort overtakes messages that the others still have to
         * forward */
        job_await(self);
        hvd_control_abort(seen.control, 3, "rank 3 has had enough");
        hvd_control_abort(seen.control, 2, "a later reason");
    }
    rank_run(&seen, rank_has_abort, PATIENCE_MS);
    job_say(self, "0 %s", seen.text);
    rank_run(&seen, NULL, 200);
    hvd_control_destroy(seen.control, 2000);
    free(seen.payload);
    return status != 0 || seen.aborts != 1 || seen.abort_rank != 3 ? 3 : 0;
}

static void reason_reaches_everyone(void)
{
    struct job job;
    bool is_good = start_watch(&job, "a a b b c c", give_up);

    job_signal(&job, 3);
    is_good = all_learn(&job, -1, "rank 3 has had enough") && is_good;
    tap_ok(job_finish(&job) && is_good,
           "the first abort of a rank reaches all ranks, itself included, exactly once");
}

/* Rank 0 aborts and leaves as soon as all ranks are connected. */
static int leave_at_once(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_meet(self, &seen);

    (void)argument;
    if (self->boot.rank == 2) {
        job_await(self);
    }
    reporter = self->boot.rank == 1 ? self : NULL;
    if (status == 0) {
        status = rank_join(self, &seen, CONNECT_MS);
    }
    if (self->boot.rank == 0) {
        hvd_control_abort(seen.control, 2, "the reason");
        hvd_control_destroy(seen.control, 200);
        job_say(self, "gone");
        return status;
    }
    rank_run(&seen, rank_has_abort, PATIENCE_MS);
    job_say(self, "0 %s", seen.text);
    hvd_control_destroy(seen.control, 2000);
    return status;
}

/* Rank 1 waits for the message that all ranks are connected. It is stopped while this
 * message, the abort and the end of the connection arrive. Rank 2, which comes last, is
 * on another node, because rank 1 is ready only after all ranks of its own. */
static void reason_behind_the_start_is_read(void)
{
    struct job job;
    char line[JOB_LINE_BYTES] = "";
    bool is_good;

    job_start(&job, "a a b", leave_at_once, NULL);
    job_serve_exchange(&job);
    is_good = job_hear(&job, 1, PATIENCE_MS, line) && strcmp(line, "ready") == 0;
    kill(job.pids[1], SIGSTOP);
    job_signal(&job, 2);
    is_good =
        job_hear(&job, 0, PATIENCE_MS, line) && strcmp(line, "gone") == 0 && is_good;
    kill(job.pids[1], SIGCONT);
    is_good = all_learn(&job, 0, "the reason") && is_good;
    tap_ok(job_finish(&job) && is_good,
           "an abort is read even if its rank leaves as soon as all are connected");
}

static int leave_in_turn(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_connect(self, &seen, CONNECT_MS);

    (void)argument;
    status = status == 0 && rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    hvd_control_expect_close(seen.control);
    job_say(self, "up");
    job_await(self); /* until all ranks expect connections to close */
    rank_run(&seen, NULL, 100 + 150 * ((self->boot.rank * 5) % self->boot.size));
    status = seen.aborts == 0 ? status : 3;
    hvd_control_destroy(seen.control, 1000);
    free(seen.payload);
    return status;
}

static void agreed_end_alarms_nobody(void)
{
    struct job job;

    bool is_good = start_watch(&job, "a a b b c c", leave_in_turn);

    for (int i = 0; i < job.size; i++) {
        job_signal(&job, i);
    }
    tap_ok(job_finish(&job) && is_good,
           "after an agreed end, ranks may leave in any order");
}

static int die_while_connecting(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int64_t begin_ms = hvd_clock_ms();
    int status;

    (void)argument;
    if (self->boot.rank == 2) {
        job_exchange(self, "", 0);
        job_await(self);
        return 0;
    }
    reporter = self->boot.rank == 1 ? self : NULL;
    status = rank_connect(self, &seen, CONNECT_MS);
    job_say(self, "%lld %s", (long long)(hvd_clock_ms() - begin_ms), seen.err.text);
    status = status == HVD_ERR_PEER && hvd_control_culprit(seen.control) == 1 ? 0 : 3;
    hvd_control_destroy(seen.control, 1000);
    return status;
}

static void death_ends_connecting(void)
{
    struct job job;
    char line[JOB_LINE_BYTES] = "";
    bool is_good;

    job_start(&job, "a a b", die_while_connecting, NULL);
    job_serve_exchange(&job);
    is_good = job_hear(&job, 1, PATIENCE_MS, line) && strcmp(line, "ready") == 0;
    job_kill(&job, 1);
    job_hear(&job, 0, PATIENCE_MS, line);
    tap_ok(is_good && strstr(line, "rank 1 on a died") != NULL && atoi(line) < NOTICE_MS,
           "a death while others are still missing ends connecting at once (%s)", line);
    job_signal(&job, 2);
    tap_ok(job_finish(&job),
           "the status is that of a death, and the culprit is the rank that died");
}

/* Rank 0 waits for ranks that never connect. */
static int wait_in_vain(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status;

    (void)argument;
    if (self->boot.rank != 0) {
        job_exchange(self, "", 0);
        job_await(self);
        return 0;
    }
    status = rank_connect(self, &seen, 200);
    job_say(self, "%s", seen.err.text);
    status = status == HVD_ERR_TIMEOUT && hvd_control_culprit(seen.control) == 1 ? 0 : 3;
    hvd_control_destroy(seen.control, 1000);
    return status;
}

static void missing_ranks_are_counted(void)
{
    struct job job;
    char line[JOB_LINE_BYTES] = "";

    job_start(&job, "a b c", wait_in_vain, NULL);
    job_serve_exchange(&job);
    job_hear(&job, 0, PATIENCE_MS, line);
    tap_ok(
        strstr(line, "rank 1 (host b) and 1 more did not connect within 0.2 s: ") == line,
        "the error names one of the ranks that never connect and counts the others (%s)",
        line);
    job_signal(&job, 1);
    job_signal(&job, 2);
    tap_ok(job_finish(&job),
           "the status is that of a timeout, and the culprit is the rank that is named");
}

int main(void)
{
    const char *deep = "a b c d e f g h i j k l";

    killed_rank_is_named("a a", 1, "a");
    killed_rank_is_named("a a b b", 3, "b");
    killed_rank_is_named("a a b b", 2, "b");
    killed_rank_is_named("a a b b", 0, "a");
    killed_rank_is_named(deep, 11, "l");
    killed_rank_is_named(deep, 1, "b");
    killed_rank_is_named(deep, 0, "a");
    forked_workers_hide_no_death();
    reason_reaches_everyone();
    reason_behind_the_start_is_read();
    agreed_end_alarms_nobody();
    death_ends_connecting();
    missing_ranks_are_counted();
    return tap_done();
}
