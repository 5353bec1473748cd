/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the failure that explains the others; turns it into a sentence and an exit
 * code. */
#include "pmix_boot/hvdrun/failure.h"

#include <stdlib.h>
#include <string.h>

void hvdrun_failure_add_end(struct hvdrun_failure *failure, int rank, pid_t pid,
                            bool is_killed, int value)
{
    bool is_better = failure->kind == HVDRUN_FAILURE_NONE ||
                     (failure->kind == HVDRUN_FAILURE_EXIT && is_killed);

    if (value == 0 || !is_better) {
        return;
    }
    *failure = (struct hvdrun_failure){
        .kind = is_killed ? HVDRUN_FAILURE_KILLED : HVDRUN_FAILURE_EXIT,
        .value = value,
        .rank = rank,
        .pid = pid,
    };
}

int hvdrun_failure_exit_code(const struct hvdrun_failure *failure)
{
    switch (failure->kind) {
    case HVDRUN_FAILURE_NONE:
        return EXIT_SUCCESS;
    case HVDRUN_FAILURE_KILLED:
    case HVDRUN_FAILURE_SIGNAL:
        return 128 + failure->value;
    case HVDRUN_FAILURE_EXIT:
    case HVDRUN_FAILURE_EARLY:
    case HVDRUN_FAILURE_LEFT:
    case HVDRUN_FAILURE_STUCK:
        break;
    }
    return failure->value > 0 && failure->value < 256 ? failure->value : EXIT_FAILURE;
}

/* Describes a rank that did not wait for the others. */
static void describe_early(const struct hvdrun_failure *failure, const char *others,
                           struct hvd_error *err)
{
    const char *colon = failure->text[0] != '\0' ? ": " : "";
    const char *how =
        failure->kind == HVDRUN_FAILURE_LEFT ? "left the job" : "exited with status 0";

    if (failure->operation[0] == '\0') {
        hvd_fail(err, HVD_ERR_PEER,
                 "rank %d (pid %d) %s before the others were done%s%s%s", failure->rank,
                 (int)failure->pid, how, colon, failure->text, others);
    } else {
        hvd_fail(err, HVD_ERR_PEER,
                 "rank %d (pid %d) %s while rank %d was in %s: did its script end early, "
                 "or have less data? See hvd.join()%s",
                 failure->rank, (int)failure->pid, how, failure->waiter,
                 failure->operation, others);
    }
}

void hvdrun_failure_describe(const struct hvdrun_failure *failure, int ranks,
                             struct hvd_error *err)
{
    const char *colon = failure->text[0] != '\0' ? ": " : "";
    const char *others = ranks > 1 ? "; the other ranks were ended" : "";

    switch (failure->kind) {
    case HVDRUN_FAILURE_NONE:
        return;
    case HVDRUN_FAILURE_EXIT:
        hvd_fail(err, HVD_ERR_PEER, "rank %d (pid %d) exited with status %d%s%s%s",
                 failure->rank, (int)failure->pid, failure->value, colon, failure->text,
                 others);
        return;
    case HVDRUN_FAILURE_KILLED:
        hvd_fail(err, HVD_ERR_PEER, "rank %d (pid %d) was killed by signal %d (%s)%s%s%s",
                 failure->rank, (int)failure->pid, failure->value,
                 strsignal(failure->value), colon, failure->text, others);
        return;
    case HVDRUN_FAILURE_EARLY:
    case HVDRUN_FAILURE_LEFT:
        describe_early(failure, others, err);
        return;
    case HVDRUN_FAILURE_STUCK:
        hvd_fail(err, HVD_ERR_PEER,
                 "rank %d (pid %d) stopped responding and did not exit by itself%s%s%s",
                 failure->rank, (int)failure->pid, colon, failure->text, others);
        return;
    case HVDRUN_FAILURE_SIGNAL:
        hvd_fail(err, HVD_ERR_SHUTDOWN, "ended by signal %d (%s)", failure->value,
                 strsignal(failure->value));
        return;
    }
}
