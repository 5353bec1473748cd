/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/core/stacks.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectives/core/job_state.h"
#include "collectives/stack/stack.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/thread.h"

enum {
    END_S = 2, /* how long to wait for the end of the thread */
};

struct hvd_stack_reader {
    pthread_t thread;
    struct hvd_live_page *page; /* borrowed */
    _Atomic bool is_ending; /* the page may vanish */
};

static void wait_futex(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_futex(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Writes the answer. While it does, `told` is 0. */
static void answer(struct hvd_live_page *page, uint32_t asked, const char *text)
{
    atomic_store(&page->stack_told, 0);
    memcpy(page->stack, text, HVD_LIVE_STACK);
    atomic_store(&page->stack_told, asked);
    wake_futex(&page->stack_told);
}

static void *answer_questions(void *arg)
{
    struct hvd_stack_reader *reader = arg;
    struct hvd_live_page *page = reader->page;
    char text[HVD_LIVE_STACK];

    while (!atomic_load(&reader->is_ending)) {
        const uint32_t asked = atomic_load(&page->stack_asked);

        if (asked == atomic_load(&page->stack_told)) {
            wait_futex(&page->stack_asked, asked);
            continue;
        }
        memset(text, 0, sizeof(text));
        hvd_stack_read(text, sizeof(text));
        if (!atomic_load(&reader->is_ending)) {
            answer(page, asked, text);
        }
    }
    return NULL;
}

int hvd_stacks_open(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_stack_reader *reader;
    int error;

    if (!job->settings.reads_stacks) {
        return 0;
    }
    reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the reader of stacks");
    }
    reader->page = hvd_live_page_of(&job->live);
    error = hvd_thread_start(&reader->thread, answer_questions, reader);
    if (error != 0) {
        hvd_log(HVD_LOG_INFO, "hvd-info --stacks cannot ask this rank: %s",
                strerror(error));
        free(reader);
        return 0;
    }
    job->stacks.reader = reader;
    return 0;
}

bool hvd_stacks_close(struct hvd_stacks *stacks)
{
    struct hvd_stack_reader *reader = stacks->reader;
    struct timespec end;

    if (reader == NULL) {
        return true;
    }
    stacks->reader = NULL;
    atomic_store(&reader->is_ending, true);
    atomic_fetch_add(&reader->page->stack_asked, 1);
    wake_futex(&reader->page->stack_asked);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += END_S;
    if (pthread_timedjoin_np(reader->thread, NULL, &end) != 0) {
        pthread_detach(reader->thread);
        return false; /* the thread still uses the struct */
    }
    free(reader);
    return true;
}
