/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for requests of libhvd and calls a function when one has ended.
 *
 * The thread waits for the oldest request for a few milliseconds and then checks all of
 * them: ranks may start the same requests in different orders, so the oldest need not end
 * first. */
#include "contrib/python/native/waiter/waiter.h"

#include <pthread.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/base/thread.h"

/* Each check polls for a moment (0.1 ms in progress.c), so that an idle waiter uses 2 %
 * of a core. */
static const int patience_ms = 5;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct hvd_awaited *first; /* only the waiter's thread removes entries */
static struct hvd_awaited **end = &first;

int hvd_awaited_wait(struct hvd_awaited *awaited, int timeout_ms, struct hvd_error *err)
{
    return awaited->has_stream
               ? hvd_wait_on(awaited->request, awaited->stream, timeout_ms, err)
               : hvd_wait_for(awaited->request, timeout_ms, err);
}

void hvd_waiter_add(struct hvd_awaited *awaited)
{
    awaited->next = NULL;
    pthread_mutex_lock(&lock);
    *end = awaited;
    end = &awaited->next;
    pthread_cond_signal(&came);
    pthread_mutex_unlock(&lock);
}

static struct hvd_awaited *oldest(void)
{
    struct hvd_awaited *found;

    pthread_mutex_lock(&lock);
    while (first == NULL) {
        pthread_cond_wait(&came, &lock);
    }
    found = first;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Removes the requests that have ended from the list; returns them as a list of their
 * own. */
static struct hvd_awaited *take_ended(void)
{
    struct hvd_awaited *taken = NULL, **taken_end = &taken, **link = &first;

    pthread_mutex_lock(&lock);
    while (*link != NULL) {
        struct hvd_awaited *each = *link;

        if (hvd_awaited_wait(each, 0, NULL) == HVD_INPROGRESS) {
            link = &each->next;
            continue;
        }
        *link = each->next;
        *taken_end = each;
        taken_end = &each->next;
    }
    *taken_end = NULL;
    end = link;
    pthread_mutex_unlock(&lock);
    return taken;
}

static void *wait_for_all(void *argument)
{
    for (;;) {
        struct hvd_awaited *each, *next;

        hvd_awaited_wait(oldest(), patience_ms, NULL);
        for (each = take_ended(); each != NULL; each = next) {
            next = each->next;
            each->ended(each);
        }
    }
    return argument;
}

static int start_thread(void)
{
    pthread_t thread;
    int failure = hvd_thread_start(&thread, wait_for_all, NULL);

    if (failure == 0) {
        pthread_detach(thread);
    }
    return failure;
}

int hvd_waiter_start(struct hvd_error *err)
{
    static bool has_thread;
    int failure = 0;

    pthread_mutex_lock(&lock);
    if (!has_thread) {
        failure = start_thread();
        has_thread = failure == 0;
    }
    pthread_mutex_unlock(&lock);
    return failure == 0 ? 0
                        : hvd_fail(err, HVD_ERR_SYS,
                                   "cannot start the waiter thread: error %d", failure);
}
