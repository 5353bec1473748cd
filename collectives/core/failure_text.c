/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the errors that requests get when the job ends. */
#include "collectives/core/failure_text.h"

#include <stdio.h>

#include "collectives/request/request.h"

static const char shutdown_text[] = "Horovod has been shut down. This was caused by an "
                                    "exception on one of the ranks or an "
                                    "attempt to allreduce, allgather or broadcast a "
                                    "tensor after one of the ranks finished "
                                    "execution. If the shutdown was caused by an "
                                    "exception, you should see the exception in "
                                    "the log before the first shutdown message.";

int hvd_failure_text(struct hvd_error *err, int status, const char *cause,
                     const char *when, const struct hvd_entry *entry)
{
    char name[HVD_OPERATION_BYTES];
    const char *operation = hvd_entry_operation(entry, name);
    char place[HVD_OPERATION_BYTES + 32];

    if (status != HVD_ERR_SHUTDOWN) {
        return hvd_fail(err, status, "%.320s, %s %s", cause, when, operation);
    }
    snprintf(place, sizeof(place), " This rank was in %s.", operation);
    if (snprintf(NULL, 0, "%s.%s %s", cause, place, shutdown_text) >=
        (int)sizeof(err->text)) {
        place[0] = '\0';
    }
    return hvd_fail(err, status, "%s.%s %s", cause, place, shutdown_text);
}
