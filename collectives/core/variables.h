/* SPDX-License-Identifier: Apache-2.0 */
/* The names that Horovod's variables have, to tell a typing error from one that is
 * known. */
#ifndef HVD_VARIABLES_H
#define HVD_VARIABLES_H

#include "gpu_binding/base/log.h"

/* Looks at every HOROVOD_ variable of an environment (a list of "name=value" that ends
 * with NULL). Logs at `level` each name that is not known, and which known one it may be
 * meant for; at level info each one that has no effect, and why. */
void hvd_variables_check(const char *const *environment, enum hvd_log_level level);

#endif
