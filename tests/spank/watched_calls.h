/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls that code running as root must not make, in a program that loads a plugin:
 * the plugin's calls are found here before the C library's. */
#ifndef HVD_TESTS_WATCHED_CALLS_H
#define HVD_TESTS_WATCHED_CALLS_H

/* From here on calls count. */
void watch_start(void);

/* The name of the first call since, or NULL when there was none; calls no longer
 * count. */
const char *watch_stop(void);

#endif
