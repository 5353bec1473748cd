/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank ends in the middle of a replayed step: replayed RANK kill|exit.
 * The others print the errors that they get, in the format of victim.c; SECONDS is the
 * time since the start of the job. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/steps.h"
#include "tests/collectives/survivor.h"

static void end(const char *how)
{
    if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    exit(1); /* as after an uncaught exception: without hvd_shutdown */
}

/* Plays steps until a call fails, and returns its status. The victim ends in the middle
 * of the last step. */
static int play(int victim, const char *how, struct hvd_error *err)
{
    struct hvd_request *requests[STEP_TENSORS];
    bool good = true;
    int status = steps_try(60, &good, err);

    for (int i = 0; i < STEP_TENSORS && status == 0; i++) {
        requests[i] = step_start(i, err);
        status = err->status;
        if (hvd_rank() == victim && i == STEP_TENSORS / 2) {
            end(how);
        }
    }
    for (int i = 0; i < STEP_TENSORS && status == 0; i++) {
        status = hvd_wait(requests[i], err);
    }
    return status;
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    struct hvd_request *next;
    struct hvd_error err = {0};
    int status;
    double start;

    survivor_init();
    start = survivor_now();
    status = play(victim, argc > 2 ? argv[2] : "kill", &err);
    survivor_pending(start, status, &err);
    next = step_start(0, &err);
    status = next != NULL ? hvd_wait(next, &err) : err.status;
    return survivor_next(status, &err);
}
