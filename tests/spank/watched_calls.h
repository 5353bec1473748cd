/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls that code running as root must not make. They replace the C library's
 * functions in a program that loads a plugin, because the plugin's symbols are looked up
 * in the program first. */
#ifndef HVD_TESTS_WATCHED_CALLS_H
#define HVD_TESTS_WATCHED_CALLS_H

/* Starts to count calls. */
void watch_start(void);

/* Returns the name of the first call since watch_start, or NULL if there was none, and
 * stops counting. */
const char *watch_stop(void);

#endif
