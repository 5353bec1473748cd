/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several failures explains the others, in words and as an exit code. */
#include "pmix_boot/hvdrun/cause.h"

#include <stdlib.h>
#include <string.h>

void hvdrun_cause_add_end(struct hvdrun_cause *cause, int rank, pid_t pid, bool is_killed,
                          int value)
{
    bool is_better = cause->kind == HVDRUN_CAUSE_NONE ||
                     (cause->kind == HVDRUN_CAUSE_EXIT && is_killed);

    if (value == 0 || !is_better) {
        return;
    }
    *cause = (struct hvdrun_cause){
        .kind = is_killed ? HVDRUN_CAUSE_KILLED : HVDRUN_CAUSE_EXIT,
        .value = value,
        .rank = rank,
        .pid = pid,
    };
}

int hvdrun_cause_exit_code(const struct hvdrun_cause *cause)
{
    switch (cause->kind) {
    case HVDRUN_CAUSE_NONE:
        return EXIT_SUCCESS;
    case HVDRUN_CAUSE_KILLED:
    case HVDRUN_CAUSE_SIGNAL:
        return 128 + cause->value;
    case HVDRUN_CAUSE_EXIT:
    case HVDRUN_CAUSE_ABORT:
        break;
    }
    return cause->value > 0 && cause->value < 256 ? cause->value : EXIT_FAILURE;
}

void hvdrun_cause_tell(const struct hvdrun_cause *cause, int ranks, struct hvd_error *err)
{
    const char *others = ranks > 1 ? "; the other ranks were ended" : "";

    switch (cause->kind) {
    case HVDRUN_CAUSE_NONE:
        return;
    case HVDRUN_CAUSE_EXIT:
        hvd_fail(err, HVD_ERR_PEER, "rank %d (pid %d) exited with status %d%s",
                 cause->rank, (int)cause->pid, cause->value, others);
        return;
    case HVDRUN_CAUSE_KILLED:
        hvd_fail(err, HVD_ERR_PEER, "rank %d (pid %d) was killed by signal %d (%s)%s",
                 cause->rank, (int)cause->pid, cause->value, strsignal(cause->value),
                 others);
        return;
    case HVDRUN_CAUSE_ABORT:
        hvd_fail(err, HVD_ERR_PEER, "rank %d (pid %d) aborted with status %d%s%s%s",
                 cause->rank, (int)cause->pid, cause->value,
                 cause->text[0] != '\0' ? ": " : "", cause->text, others);
        return;
    case HVDRUN_CAUSE_SIGNAL:
        hvd_fail(err, HVD_ERR_SHUTDOWN, "ended by signal %d (%s)", cause->value,
                 strsignal(cause->value));
        return;
    }
}
