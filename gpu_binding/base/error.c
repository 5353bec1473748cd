/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a failure and its reason in one statement. */
#include "gpu_binding/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int hvd_fail(struct hvd_error *err, int status, const char *format, ...)
{
    int saved = errno;

    if (err != NULL) {
        va_list args;

        err->status = status;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    errno = saved;
    return status;
}

const char *hvd_status_name(int status)
{
    switch (status) {
    case HVD_OK:
        return "ok";
    case HVD_INPROGRESS:
        return "in progress";
    case HVD_ERR_ARG:
        return "bad argument";
    case HVD_ERR_NOMEM:
        return "out of memory";
    case HVD_ERR_SYS:
        return "system error";
    case HVD_ERR_NET:
        return "network error";
    case HVD_ERR_PEER:
        return "a rank died";
    case HVD_ERR_TIMEOUT:
        return "time limit passed";
    case HVD_ERR_MISMATCH:
        return "ranks disagree";
    case HVD_ERR_UNSUPPORTED:
        return "not supported";
    case HVD_ERR_STATE:
        return "not initialised";
    case HVD_ERR_SHUTDOWN:
        return "shut down";
    case HVD_ERR_ABORTED:
        return "process set aborted";
    case HVD_ERR_DISMISSED:
        return "not needed";
    default:
        return "unknown status";
    }
}
