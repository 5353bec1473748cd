/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of a job, in words and as an exit code. */
#include "pmix_boot/hvdrun/failure.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static void test_failures(void)
{
    struct hvdrun_failure failure = {0};
    struct hvd_error err = {0};

    hvdrun_failure_describe(&failure, 3, &err);
    tap_ok(err.status == 0 && hvdrun_failure_exit_code(&failure) == 0,
           "without a failure there is no text");
    hvdrun_failure_add_end(&failure, 0, 100, false, 0);
    tap_ok(failure.kind == HVDRUN_FAILURE_NONE,
           "a rank that exits with 0 is not a failure");
    hvdrun_failure_add_end(&failure, 2, 102, false, 4);
    hvdrun_failure_add_end(&failure, 0, 100, false, 5);
    hvdrun_failure_describe(&failure, 3, &err);
    tap_ok(strcmp(err.text, "rank 2 (pid 102) exited with status 4; the other ranks were "
                            "ended") == 0 &&
               hvdrun_failure_exit_code(&failure) == 4,
           "the first failure stays");
    hvdrun_failure_add_end(&failure, 1, 101, true, 9);
    hvdrun_failure_describe(&failure, 3, &err);
    tap_ok(strncmp(err.text, "rank 1 (pid 101) was killed by signal 9 (", 41) == 0 &&
               hvdrun_failure_exit_code(&failure) == 137,
           "a rank that was killed explains ranks that failed");
    snprintf(failure.text, sizeof(failure.text), "memory ran out");
    hvdrun_failure_describe(&failure, 3, &err);
    tap_ok(strstr(err.text, "): memory ran out; the other ranks were ended") != NULL,
           "the text includes further details");
    failure = (struct hvdrun_failure){
        .kind = HVDRUN_FAILURE_EARLY, .value = 3, .rank = 1, .pid = 7};
    hvdrun_failure_describe(&failure, 2, &err);
    tap_ok(strcmp(err.text, "rank 1 (pid 7) exited with status 0 before the others were "
                            "done; the other ranks were ended") == 0 &&
               hvdrun_failure_exit_code(&failure) == 3,
           "a rank that exits too early is named, with the exit code of the rank that "
           "needed it");
    snprintf(failure.operation, sizeof(failure.operation), "allreduce 'x'");
    hvdrun_failure_describe(&failure, 2, &err);
    tap_ok(strcmp(err.text, "rank 1 (pid 7) exited with status 0 while rank 0 was in "
                            "allreduce 'x': did its script end early, or have less data? "
                            "See hvd.join(); the other ranks were ended") == 0,
           "the operation in which another rank needed it is named");
    failure.kind = HVDRUN_FAILURE_LEFT;
    hvdrun_failure_describe(&failure, 2, &err);
    tap_ok(strncmp(err.text, "rank 1 (pid 7) left the job while rank 0 was in ", 48) == 0,
           "a rank that left the job and goes on is not said to be stuck");
    failure =
        (struct hvdrun_failure){.kind = HVDRUN_FAILURE_EXIT, .value = 1, .text = "why"};
    hvdrun_failure_describe(&failure, 1, &err);
    tap_ok(strcmp(err.text, "rank 0 (pid 0) exited with status 1: why") == 0 &&
               hvdrun_failure_exit_code(&failure) == 1,
           "the reason that a rank reported is repeated");
    failure = (struct hvdrun_failure){.kind = HVDRUN_FAILURE_SIGNAL, .value = SIGINT};
    hvdrun_failure_describe(&failure, 2, &err);
    tap_ok(strncmp(err.text, "ended by signal 2 (", 19) == 0 &&
               hvdrun_failure_exit_code(&failure) == 130,
           "a signal to hvdrun is named");
}

int main(void)
{
    test_failures();
    return tap_done();
}
