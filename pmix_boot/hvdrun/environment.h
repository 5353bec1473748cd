/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a process that is about to be started: words "name=value". */
#ifndef HVDRUN_ENVIRONMENT_H
#define HVDRUN_ENVIRONMENT_H

#include <stdbool.h>

#include "pmix_boot/hvdrun/words.h"

/* The value, borrowed until the next change; NULL when there is none. */
const char *hvdrun_environment_get(const struct hvdrun_words *environment,
                                   const char *name);

/* With overwrite false a variable that exists stays as it is, which is no failure. */
int hvdrun_environment_set(struct hvdrun_words *environment, const char *name,
                           const char *value, bool overwrite, struct hvd_error *err);

/* Removes every variable whose name begins with prefix. */
void hvdrun_environment_remove(struct hvdrun_words *environment, const char *prefix);

#endif
