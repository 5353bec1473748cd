/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the errors that requests get when the job ends. */
#include "collectives/core/failure_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/request/request.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/nccl_files.h"

enum {
    CAUSE_BYTES = 320,
    /* leaves the cause 130 bytes beside the longest name of an operation */
    ADVICE_BYTES = 210,
};

static const char shutdown_text[] = "Horovod has been shut down. This was caused by an "
                                    "exception on one of the ranks or an "
                                    "attempt to allreduce, allgather or broadcast a "
                                    "tensor after one of the ranks finished "
                                    "execution. If the shutdown was caused by an "
                                    "exception, you should see the exception in "
                                    "the log before the first shutdown message.";

/* The failure of NCCL ends with a line that names a command. A long cause is cut. */
static int fail_request(struct hvd_error *err, int status, const char *cause,
                        const char *when, const char *operation)
{
    char advice[ADVICE_BYTES];
    int room = CAUSE_BYTES;

    if (!hvd_nccl_files_advise(getenv(HVD_ENV_NCCL_FILES), cause, advice,
                               sizeof(advice))) {
        return hvd_fail(err, status, "%.*s, %s %s", room, cause, when, operation);
    }
    room = (int)(sizeof(err->text) - sizeof(", before \n") - strlen(operation) -
                 strlen(advice));
    room = room < CAUSE_BYTES ? room : CAUSE_BYTES;
    return hvd_fail(err, status, "%.*s, %s %s\n%s", room, cause, when, operation, advice);
}

int hvd_failure_text(struct hvd_error *err, int status, const char *cause,
                     const char *when, const struct hvd_entry *entry)
{
    char name[HVD_OPERATION_BYTES];
    const char *operation = hvd_entry_operation(entry, name);
    char place[HVD_OPERATION_BYTES + 32];

    if (status != HVD_ERR_SHUTDOWN) {
        return fail_request(err, status, cause, when, operation);
    }
    snprintf(place, sizeof(place), " This rank was in %s.", operation);
    if (snprintf(NULL, 0, "%s.%s %s", cause, place, shutdown_text) >=
        (int)sizeof(err->text)) {
        place[0] = '\0';
    }
    return hvd_fail(err, status, "%s.%s %s", cause, place, shutdown_text);
}
