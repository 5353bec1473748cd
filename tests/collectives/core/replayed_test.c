/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, and a shutdown, in the middle of replayed steps. Runs as each rank of a job.
 * Rank 0 prints TAP; a rank that finds an error ends with status 1. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/steps.h"
#include "tests/tap.h"

enum {
    STEPS = 60
};

static const char shutdown_text[] = "Horovod has been shut down. This was caused by an "
                                    "exception on one of the ranks or an "
                                    "attempt to allreduce, allgather or broadcast a "
                                    "tensor after one of the ranks finished "
                                    "execution. If the shutdown was caused by an "
                                    "exception, you should see the exception in "
                                    "the log before the first shutdown message.";

static int rank;

static bool report(bool good, const char *promise)
{
    if (rank == 0) {
        tap_ok(good, "%s", promise);
    } else if (!good) {
        fprintf(stderr, "# rank %d: not ok: %s\n", rank, promise);
    }
    return good;
}

/* Acts as a child that tries to use the library, is refused, cleans up, and ends as
 * programs do. */
static void be_curious(void)
{
    struct hvd_error err = {0};
    bool refused = step_start(0, &err) == NULL && err.status == HVD_ERR_STATE &&
                   strstr(err.text, "forked") != NULL;

    hvd_shutdown();
    refused = refused && hvd_is_initialized() == 0;
#ifdef __SANITIZE_ADDRESS__
    /* otherwise memory of the parent would be reported as leaks of the child */
    _exit(refused ? 0 : 1);
#endif
    exit(refused ? 0 : 1);
}

/* Forks two workers, as a data loader does: one ends at once, one stays. */
static bool fork_in_a_step(void)
{
    struct hvd_request *requests[STEP_TENSORS];
    struct hvd_error err = {0};
    pid_t curious = 0, worker = 0;
    int status = 0;
    bool good = steps_play(STEPS);

    fflush(stdout);
    for (int i = 0; i < STEP_TENSORS; i++) {
        requests[i] = step_start(i, NULL);
        if (i == STEP_TENSORS / 2) {
            curious = fork();
            if (curious == 0) {
                be_curious();
            }
            worker = fork();
            if (worker == 0) {
                alarm(60);
                pause();
            }
        }
    }
    for (int i = 0; i < STEP_TENSORS; i++) {
        call_finish(0, &requests[i], &err);
        hvd_request_free(requests[i]);
        good &= step_is_right(i);
    }
    good &= steps_play(STEPS);
    good &= waitpid(curious, &status, 0) == curious && status == 0;
    kill(worker, SIGKILL);
    waitpid(worker, &status, 0);
    return report(good, "forks in a replayed step do not disturb the ranks, and the "
                        "children are refused");
}

/* Rank 1 shuts down after it has started half of a step. */
static bool shut_down_in_a_step(void)
{
    int count = rank == 1 ? STEP_TENSORS / 2 : STEP_TENSORS;
    struct hvd_request *requests[STEP_TENSORS];
    struct hvd_error err = {0};
    bool good = steps_play(STEPS);

    for (int i = 0; i < count; i++) {
        requests[i] = step_start(i, &err);
    }
    if (rank == 1) {
        hvd_shutdown();
    }
    for (int i = 0; i < count; i++) {
        int status = requests[i] != NULL ? hvd_wait(requests[i], &err) : err.status;
        bool all_have_it = i < STEP_TENSORS / 2;
        bool as_it_should = status == HVD_ERR_SHUTDOWN
                                ? strstr(err.text, shutdown_text) != NULL
                                : status == 0 && all_have_it && step_is_right(i);

        if (!as_it_should) {
            fprintf(stderr, "# rank %d: tensor %d of %d: status %d, %s\n", rank, i, count,
                    status, status != 0 ? err.text : "wrong sums, or not all have it");
        }
        good &= as_it_should;
        hvd_request_free(requests[i]);
    }
    if (rank != 1) {
        good &= step_start(0, &err) == NULL && err.status == HVD_ERR_SHUTDOWN &&
                strstr(err.text, shutdown_text) != NULL;
    }
    hvd_shutdown();
    return report(good, "a shutdown ends the requests of a replayed step on all ranks "
                        "with Horovod's words");
}

int main(void)
{
    bool good;

    rank = call_init();
    good = fork_in_a_step();
    good &= shut_down_in_a_step();
    call_init();
    good &= report(steps_play(STEPS), "init works again after the shutdown");
    hvd_shutdown();
    if (rank == 0) {
        return tap_done();
    }
    return good ? 0 : 1;
}
