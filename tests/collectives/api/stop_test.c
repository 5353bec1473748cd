/* SPDX-License-Identifier: Apache-2.0 */
/* A signal to one rank stops all ranks at the same step. Runs as each rank of a job, with
 * the name of the signal as its argument; rank 0 prints TAP. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    STEPS = 40,
};

static int rank;
/* calls of the handler that the program has installed itself */
static volatile sig_atomic_t calls_of_own;

static void own_handler(int signal_number)
{
    (void)signal_number;
    calls_of_own++;
}

static int should_stop(void)
{
    struct hvd_error err = {0};
    int answer = hvd_should_stop(&err);

    if (answer < 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return answer;
}

/* Whether the claim is true on all ranks. */
static bool all_say(bool mine)
{
    int32_t sum = mine ? 1 : 0;
    struct hvd_tensor tensor = call_tensor("sum", HVD_INT32, NULL, 0, &sum, &sum);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
    return sum == hvd_size();
}

static int end_of_child(void (*run)(void))
{
    pid_t child = fork();
    int code = 0;

    if (child == 0) {
        run();
        _exit(0);
    }
    waitpid(child, &code, 0);
    return code;
}

static void ignore_signal(void)
{
    struct sigaction now;

    signal(SIGUSR1, SIG_IGN);
    hvd_stop_on_signals();
    sigaction(SIGUSR1, NULL, &now);
    _exit(now.sa_handler == SIG_IGN ? 0 : 1);
}

static void get_signal(void)
{
    kill(getpid(), SIGUSR1);
}

/* Returns the step at which this rank stops; the victim sends itself the signal before
 * step `when`. */
static int run_steps(bool is_victim, int signal_number, int when)
{
    for (int step = 0; step < STEPS; step++) {
        if (is_victim && step == when) {
            kill(getpid(), signal_number);
        }
        if (should_stop()) {
            return step;
        }
    }
    return -1;
}

int main(int count, char **words)
{
    int signal_number = count > 1 && strcmp(words[1], "TERM") == 0 ? SIGTERM : SIGUSR1;
    int ignored = end_of_child(ignore_signal), victim, when, stopped, child;
    bool is_same, is_told, stays, is_last;
    uint32_t seed;

    signal(SIGTERM, own_handler);
    rank = call_init();
    seed = call_seed();
    victim = (int)(seed % (uint32_t)hvd_size());
    when = (int)(seed / 64 % STEPS);
    is_same = all_say(run_steps(false, 0, 0) == -1);
    if (rank == 0) {
        tap_ok(WIFEXITED(ignored) && WEXITSTATUS(ignored) == 0,
               "a signal that the program ignores stays ignored");
        tap_ok(is_same, "without a signal no rank is told to stop");
    }
    child = end_of_child(get_signal);
    is_told = all_say(WIFSIGNALED(child) && WTERMSIG(child) == SIGUSR1);
    stopped = run_steps(rank == victim, signal_number, when);
    is_same = all_say(stopped == when);
    stays = all_say(should_stop() == signal_number);
    if (rank == victim) {
        kill(getpid(), SIGTERM);
    }
    is_last = all_say(should_stop() == SIGTERM);
    if (rank == 0) {
        tap_ok(is_told, "a signal ends a forked child as it would without hvd");
        tap_ok(is_same,
               "a signal to rank %d before step %d stops all at that step (%d here)",
               victim, when, stopped);
        tap_ok(stays, "the answer is this signal, and stays so");
        tap_ok(is_last, "after a SIGTERM, it is SIGTERM");
    }
    is_told =
        all_say(calls_of_own == (rank == victim ? 1 + (signal_number == SIGTERM) : 0));
    if (rank == 0) {
        tap_ok(is_told, "the program's own handler is called for its signal only");
    }
    hvd_shutdown();
    return rank == 0 ? tap_done() : 0;
}
