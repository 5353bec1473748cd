/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the log lines that the code under test writes. */
#ifndef HVD_TESTS_LOGGED_H
#define HVD_TESTS_LOGGED_H

#include <stdbool.h>

#include "gpu_binding/base/log.h"

/* Forgets all lines and takes those that come from now on, of every level. */
void logged_begin(void);

/* How many lines came at this level. */
int logged_count(enum hvd_log_level level);

/* Whether some line at this level has the text in it. */
bool logged_has(enum hvd_log_level level, const char *text);

/* Whether the last line at this level ends with the text. */
bool logged_ended(enum hvd_log_level level, const char *text);

/* Prints all lines as TAP notes. */
void logged_show(void);

#endif
