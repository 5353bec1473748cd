/* SPDX-License-Identifier: Apache-2.0 */
/* UCX is a guest in the user's process: what it changes there when it is loaded is
 * undone, unless the user asked for it. */
#ifndef HVD_UCX_QUIET_H
#define HVD_UCX_QUIET_H

/* UCX takes over SIGSEGV, SIGBUS, SIGFPE and SIGILL when it is loaded. Gives them back,
 * where its handler is still the current one; does nothing when UCX_HANDLE_ERRORS is
 * set. */
void hvd_ucx_restore_signals(void);

/* UCX prints warnings to the standard output. Gives them to log, the same for all, until
 * as many calls of hvd_ucx_loud; does nothing when UCX_LOG_LEVEL is set. */
void hvd_ucx_quiet(void (*log)(const char *line));
void hvd_ucx_loud(void);

#endif
