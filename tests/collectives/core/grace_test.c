/* SPDX-License-Identifier: Apache-2.0 */
/* Once a job under srun has failed, SIGTERM ends a rank only after some seconds. In all
 * other cases it ends the process at once. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/core/grace.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "tests/tap.h"

enum {
    LIMIT_S = 100, /* seconds after which a process ends that no other signal has ended */
    OWN_CODE = 9
};

static void live_on(int fd)
{
    (void)!write(fd, "alive", 5);
    close(fd);
    alarm(LIMIT_S);
    for (;;) {
        pause();
    }
}

/* Forks a child that calls `prepare` and then gets SIGTERM. Returns its wait status. *ms:
 * the time until it ended. *has_lived: it still ran after the signal. */
static int end_of(void (*prepare)(void), bool *has_lived, int64_t *ms)
{
    const int64_t begin_ms = hvd_clock_ms();
    char text[8];
    int ends[2], status = 0;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0) {
        return -1;
    }
    if (child == 0) {
        close(ends[0]);
        prepare();
        kill(getpid(), SIGTERM);
        live_on(ends[1]);
    }
    close(ends[1]);
    *has_lived = read(ends[0], text, sizeof(text)) == 5;
    close(ends[0]);
    waitpid(child, &status, 0);
    *ms = hvd_clock_ms() - begin_ms;
    return status;
}

static bool is_ended_at_once(void (*prepare)(void))
{
    bool has_lived = true;
    int64_t ms;
    int status = end_of(prepare, &has_lived, &ms);

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && !has_lived;
}

static bool is_ended_later(void (*prepare)(void))
{
    bool has_lived = false;
    int64_t ms = 0;
    int status = end_of(prepare, &has_lived, &ms);

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && has_lived &&
           ms >= HVD_GRACE_S * 1000;
}

/* --- preparations before the signal --- */

static void begin_under_srun(void)
{
    setenv(HVD_ENV_LAUNCH, "1", 1);
    unsetenv(HVD_ENV_HOROVOD_ELASTIC);
    hvd_grace_begin();
}

static void get_another_signal(void)
{
    begin_under_srun();
    kill(getpid(), SIGTERM);
}

static void begin_without_srun(void)
{
    unsetenv(HVD_ENV_LAUNCH);
    hvd_grace_begin();
}

static void begin_in_elastic_job(void)
{
    setenv(HVD_ENV_LAUNCH, "1", 1);
    setenv(HVD_ENV_RENDEZVOUS, "n1:1:key", 1);
    setenv(HVD_ENV_HOROVOD_ELASTIC, "1", 1);
    hvd_grace_begin();
}

static void begin_another_job(void)
{
    begin_under_srun();
    hvd_grace_end();
}

static void fail_again(void)
{
    begin_another_job();
    hvd_grace_begin();
}

static void end_with_own_code(int number)
{
    (void)number;
    _exit(OWN_CODE);
}

static void have_a_handler(void)
{
    signal(SIGTERM, end_with_own_code);
    begin_under_srun();
}

static void set_a_handler(void)
{
    begin_under_srun();
    signal(SIGTERM, end_with_own_code);
    hvd_grace_end();
}

/* Forks again, so that a child of the rank gets the signal; the rank then ends as its
 * child did. */
static void fork_a_worker(void)
{
    int status = 0;
    pid_t worker;

    begin_under_srun();
    worker = fork();
    if (worker == 0) {
        return;
    }
    waitpid(worker, &status, 0);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(1);
}

static bool ends_with_own_code(void (*prepare)(void))
{
    bool has_lived = false;
    int64_t ms;
    int status = end_of(prepare, &has_lived, &ms);

    return WIFEXITED(status) && WEXITSTATUS(status) == OWN_CODE;
}

int main(void)
{
    tap_ok(is_ended_later(begin_under_srun),
           "SIGTERM ends a rank under srun later if its job has failed");
    tap_ok(is_ended_later(get_another_signal),
           "further signals neither end the rank sooner nor give it more time");
    tap_ok(is_ended_at_once(begin_without_srun), "without srun the rank ends at once");
    tap_ok(is_ended_at_once(begin_in_elastic_job),
           "in an elastic job the rank ends at once");
    tap_ok(is_ended_at_once(begin_another_job),
           "after it has joined another job the rank ends at once");
    tap_ok(is_ended_later(fail_again), "the rank ends later if that job fails, too");
    tap_ok(is_ended_at_once(fork_a_worker), "a forked child ends at once");
    tap_ok(ends_with_own_code(have_a_handler),
           "a handler that the program has set before stays");
    tap_ok(ends_with_own_code(set_a_handler),
           "a handler that the program sets later replaces hvd's");
    return tap_done();
}
