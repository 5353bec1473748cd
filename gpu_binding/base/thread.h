/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the library's threads with signals blocked. Signals are for the program's own
 * threads: one of them may block a signal, such as that of Slurm's --signal, and wait for
 * it. A signal that a thread causes itself (such as SIGSEGV) still goes to the program's
 * handler. */
#ifndef HVD_THREAD_H
#define HVD_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread; like pthread_create, returns 0 or an errno. */
int hvd_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* Block and restore the signals of the calling thread around a call to another library,
 * so that threads that the call starts inherit the mask and take no signals, either. The
 * caller's signals are delayed meanwhile, so do not wait for other ranks in between. */
void hvd_thread_block_signals(sigset_t *before);
void hvd_thread_restore_signals(const sigset_t *before);

#endif
