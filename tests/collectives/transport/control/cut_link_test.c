/* SPDX-License-Identifier: Apache-2.0 */
/* When a network is cut, no socket is closed: both sides must notice the silence soon.
 * Runs ranks 0 and 1 in one network namespace and rank 2 in another. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/sock/interfaces.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/tap.h"

enum {
    FAR = 2,
    CONNECT_MS = 60000,
    /* far above HVD_SOCKET_DEAD_AFTER_MS, for slow machines, and far below the minutes
     * that the kernel waits by itself */
    NOTICE_MS = 20000,
    PATIENCE_MS = 60000
};

static bool run(const char *line)
{
    return system(line) == 0;
}

/* Name of the link's end on this side. Each test uses a new name, because a link is
 * removed some time after the namespace at its other end. */
static char near[16];

static bool add_link_to(pid_t process)
{
    char line[128];

    snprintf(near, sizeof(near), "near%d", (int)process % 1000000);
    snprintf(line, sizeof(line), "ip link add %s type veth peer name far netns %d", near,
             (int)process);
    if (!run(line)) {
        return false;
    }
    snprintf(line, sizeof(line), "ip addr add 10.99.0.1/24 dev %s && ip link set %s up",
             near, near);
    return run(line);
}

/* Waits until the kernel reports a new link as running, which is a moment after it is
 * up. */
static void await_link(void)
{
    int64_t end_ms = hvd_clock_ms() + PATIENCE_MS;

    while (hvd_clock_ms() < end_ms) {
        struct hvd_ip ip;
        int count = 0;

        if (hvd_interfaces_list(NULL, &ip, 1, &count, NULL) == 0 && count == 1 &&
            ip.version == 4 && ip.bytes[0] == 10) {
            return;
        }
        usleep(10000);
    }
}

static bool cut_link(void)
{
    char line[128];

    snprintf(line, sizeof(line), "ip link set %s down", near);
    return run(line);
}

static int watch(struct job_rank *self, const void *argument)
{
    bool is_talking = *(const bool *)argument;
    struct seen seen;
    int64_t begin_ms;
    int status;

    if (self->boot.rank == FAR) {
        job_say(self, unshare(CLONE_NEWNET) == 0 ? "away" : "not away");
        job_await(self);
        job_say(self, run("ip addr add 10.99.0.2/24 dev far && ip link set far up")
                          ? "linked"
                          : "not linked");
    }
    job_await(self);
    await_link();
    status = rank_connect(self, &seen, CONNECT_MS);
    status = status == 0 && rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    job_say(self, status == 0 ? "up" : "down %s", seen.err.text);
    job_await(self);
    begin_ms = hvd_clock_ms();
    if (is_talking) {
        hvd_control_send_down(seen.control, 1, "hello", 5);
    }
    rank_run(&seen, rank_has_abort, PATIENCE_MS);
    job_say(self, "%lld %s", (long long)(hvd_clock_ms() - begin_ms), seen.text);
    hvd_control_destroy(seen.control, 0);
    free(seen.payload);
    return status;
}

static bool learns(struct job *job, int rank, const char *wanted)
{
    char line[JOB_LINE_BYTES] = "";
    char *text = line;

    job_hear(job, rank, PATIENCE_MS + 5000, line);
    tap_note("rank %d: %s", rank, line);
    return strtol(line, &text, 10) < NOTICE_MS && text != line &&
           strncmp(text + 1, wanted, strlen(wanted)) == 0;
}

static bool come_up(struct job *job)
{
    char line[JOB_LINE_BYTES];
    bool is_up;

    is_up = job_hear(job, FAR, PATIENCE_MS, line) && strcmp(line, "away") == 0 &&
            add_link_to(job->pids[FAR]);
    job_signal(job, FAR);
    is_up = job_hear(job, FAR, PATIENCE_MS, line) && strcmp(line, "linked") == 0 && is_up;
    for (int i = 0; i < job->size; i++) {
        job_signal(job, i);
    }
    job_serve_exchange(job);
    for (int i = 0; i < job->size; i++) {
        is_up = job_hear(job, i, PATIENCE_MS, line) && strcmp(line, "up") == 0 && is_up;
    }
    return is_up;
}

static void cut_is_noticed(bool is_talking)
{
    struct job job;
    bool is_good;

    job_start(&job, "a a b", watch, &is_talking);
    is_good = come_up(&job);
    is_good = cut_link() && is_good;
    for (int i = 0; i < job.size; i++) {
        job_signal(&job, i);
    }
    is_good = learns(&job, 0, "rank 2 on b cannot be reached") && is_good;
    is_good = learns(&job, 1, "rank 2 on b cannot be reached") && is_good;
    is_good = learns(&job, 2, "rank 0 on a cannot be reached") && is_good;
    is_good = job_finish(&job) && is_good;
    tap_ok(is_good, "both sides of a cut network notice it soon, %s",
           is_talking ? "while a message is under way"
                      : "while there is nothing to send");
}

int main(void)
{
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        printf("1..0 # SKIP a network namespace cannot be had: %s\n", strerror(errno));
        return 0;
    }
    if (!run("ip link set lo up")) {
        printf("1..0 # SKIP the command ip is missing or not allowed\n");
        return 0;
    }
    cut_is_noticed(false);
    cut_is_noticed(true);
    return tap_done();
}
