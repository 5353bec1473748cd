/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Horovod's variables and of hvd's settings, to tell a typing error from a
 * known name. */
#ifndef HVD_VARIABLES_H
#define HVD_VARIABLES_H

#include "gpu_binding/base/log.h"

/* Checks every HOROVOD_ variable of an environment (a list of "name=value" that ends with
 * NULL). Logs each unknown name at `level`, with the known name that it resembles; and at
 * level info each variable that has no effect, with the reason. Also logs each
 * HVD_ variable whose name is almost that of a setting of hvd. */
void hvd_variables_check(const char *const *environment, enum hvd_log_level level);

#endif
