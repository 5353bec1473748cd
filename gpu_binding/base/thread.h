/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library take no signals: those are for the program's own threads, which
 * may have blocked one to wait for it, as one does for Slurm's --signal. What a thread
 * causes itself (SIGSEGV and its like) still goes to the program's handler. */
#ifndef HVD_THREAD_H
#define HVD_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create: 0 or an errno. */
int hvd_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* For other libraries, whose threads inherit the mask of the one that calls them: between
 * the two, which one thread calls in pairs, it takes no signals; they wait. So not while
 * it waits for other ranks. */
void hvd_thread_block_signals(sigset_t *before);
void hvd_thread_restore_signals(const sigset_t *before);

#endif
