/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes changes that UCX makes to the user's process when it is loaded, unless the user
 * asked for them. */
#ifndef HVD_UCX_QUIET_H
#define HVD_UCX_QUIET_H

/* UCX installs handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL when it is loaded.
 * Restores the previous handlers if those of UCX are still in place; does nothing if
 * UCX_HANDLE_ERRORS is set. */
void hvd_ucx_restore_signals(void);

/* UCX prints warnings to standard output. quiet passes them to `log` instead, which must
 * be the same in all calls; loud undoes one call of quiet. Both do nothing if
 * UCX_LOG_LEVEL is set. */
void hvd_ucx_quiet(void (*log)(const char *line));
void hvd_ucx_loud(void);

#endif
