/* SPDX-License-Identifier: Apache-2.0 */
/* Records the log lines of the code under test. */
#ifndef HVD_TESTS_LOGGED_H
#define HVD_TESTS_LOGGED_H

#include <stdbool.h>

#include "gpu_binding/base/log.h"

/* Forgets all lines, and records lines of every level from now on. */
void logged_begin(void);

/* Returns the number of lines at a level. */
int logged_count(enum hvd_log_level level);

/* Whether a line at this level contains the text. */
bool logged_has(enum hvd_log_level level, const char *text);

/* Whether the last line at this level ends with the text. */
bool logged_ended(enum hvd_log_level level, const char *text);

/* Prints all lines as TAP notes. */
void logged_show(void);

#endif
