/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the library's threads, which take no signals. */
#include "gpu_binding/base/thread.h"

#include <stddef.h>

int hvd_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t before;
    int error;

    hvd_thread_block_signals(&before);
    error = pthread_create(thread, NULL, run, arg);
    hvd_thread_restore_signals(&before);
    return error;
}

void hvd_thread_block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t others;

    sigfillset(&others);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        sigdelset(&others, own[i]);
    }
    pthread_sigmask(SIG_BLOCK, &others, before);
}

void hvd_thread_restore_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
