/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a failure and its reason in one statement. */
#ifndef HVD_ERROR_H
#define HVD_ERROR_H

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/hvd_status.h"

/* Writes status and text (printf format, %m allowed) to err, which may be NULL, and
 * returns status, so that a function can end with `return hvd_fail(err, HVD_ERR_SYS,
 * "...: %m");`. A text longer than the buffer is cut. Leaves errno alone. */
int hvd_fail(struct hvd_error *err, int status, const char *format, ...) HVD_PRINTF(3, 4);

/* Returns a few words for a status, for messages that have no text of their own. Never
 * NULL. */
const char *hvd_status_name(int status);

#endif
