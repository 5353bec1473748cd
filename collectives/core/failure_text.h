/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the errors that requests get when the job ends. The cause comes first,
 * then the operation of the request.
 *
 * Threads: any. */
#ifndef HVD_FAILURE_TEXT_H
#define HVD_FAILURE_TEXT_H

#include "gpu_binding/base/error.h"

struct hvd_entry;

/* Writes the error of the entry's request, and returns status. cause: for
 * HVD_ERR_SHUTDOWN which rank has left and why, else what failed. when: "in" if the
 * request had been submitted, "before" if it is refused. After a shutdown the text ends
 * with Horovod's sentences, for which scripts look, and names the operation only if there
 * is room. */
int hvd_failure_text(struct hvd_error *err, int status, const char *cause,
                     const char *when, const struct hvd_entry *entry);

#endif
