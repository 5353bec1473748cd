/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/core/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/core/job_state.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/fork_close.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

/* Creates the memory file. Returns its page, or NULL with the reason in errno. */
static struct hvd_live_page *map_page(int *fd)
{
    const size_t bytes = sizeof(struct hvd_live_page);
    void *page = MAP_FAILED;

    *fd = memfd_create(HVD_LIVE_PAGE_FILE, MFD_CLOEXEC);
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0 && hvd_fork_close_add(*fd) == 0) {
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    }
    if (page == MAP_FAILED) {
        hvd_fork_close_now(*fd);
        *fd = -1;
        return NULL;
    }
    return page;
}

static uint32_t read_number(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

int hvd_live_open(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_live *live = &job->live;

    live->page = map_page(&live->fd);
    if (live->page == NULL) {
        hvd_log(HVD_LOG_INFO, "hvd-info --job cannot ask this rank: %m");
        live->page = calloc(1, sizeof(*live->page));
    }
    if (live->page == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the page of this rank");
    }
    live->page->bytes = sizeof(*live->page);
    live->page->pid = (int32_t)getpid();
    live->page->rank = job->boot->rank;
    live->page->size = job->boot->size;
    live->page->number = job->boot->number;
    live->page->slurm_job = read_number(HVD_ENV_SLURM_JOB);
    live->page->slurm_step = read_number(HVD_ENV_SLURM_STEP);
    snprintf(live->page->host, sizeof(live->page->host), "%s",
             job->boot->peers[job->boot->rank].host);
    atomic_thread_fence(memory_order_release);
    live->page->magic = HVD_LIVE_MAGIC;
    return 0;
}

void hvd_live_close(struct hvd_live *live, bool is_free)
{
    if (live->page == NULL) {
        return;
    }
    if (is_free && live->fd < 0) {
        free(live->page);
    } else if (is_free) {
        munmap(live->page, sizeof(*live->page));
    }
    if (live->fd >= 0) {
        hvd_fork_close_now(live->fd);
    }
    live->page = NULL;
}

struct hvd_live_page *hvd_live_page_of(const struct hvd_live *live)
{
    return live->page;
}

static void list_tensors(const struct hvd_entry *entry, struct hvd_live_record *state)
{
    char operation[HVD_OPERATION_BYTES];

    state->count = 0;
    for (; entry != NULL && state->count < HVD_LIVE_TENSORS; entry = entry->newer) {
        struct hvd_live_tensor *tensor = &state->tensors[state->count++];

        tensor->submitted_ns = entry->submitted_ns;
        tensor->set = entry->descriptor.set;
        snprintf(tensor->operation, sizeof(tensor->operation), "%s",
                 hvd_entry_operation(entry, operation));
    }
}

/* Whether the rank has done nothing since it wrote the state: it was only woken, to
 * answer another rank. */
static bool is_unchanged(const struct hvd_live *live)
{
    struct hvd_live_page *page = live->page;

    return page->state.written_ns != 0 && page->state.messages == 0 &&
           live->written_phase ==
               atomic_load_explicit(&page->phase, memory_order_relaxed) &&
           page->state.begun ==
               atomic_load_explicit(&page->begun, memory_order_relaxed) &&
           page->state.ended == atomic_load_explicit(&page->ended, memory_order_relaxed);
}

void hvd_live_write(struct hvd_job *job, int64_t now_ns)
{
    struct hvd_live_page *page = job->live.page;
    const uint32_t turn = atomic_load_explicit(&page->turn, memory_order_relaxed);
    const int64_t since_ns = is_unchanged(&job->live) ? page->state.written_ns : now_ns;

    atomic_store_explicit(&page->turn, turn + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    job->live.written_phase = atomic_load_explicit(&page->phase, memory_order_relaxed);
    page->state.written_ns = since_ns;
    page->state.begun = atomic_load_explicit(&page->begun, memory_order_relaxed);
    page->state.ended = atomic_load_explicit(&page->ended, memory_order_relaxed);
    page->state.waiting = hvd_waiters_exist(&job->waiters);
    page->state.messages =
        hvd_p2p_source_is_open(&job->p2p_source) && hvd_p2p_source_has_pending(job);
    list_tensors(hvd_submissions_tensors(&job->submissions)->oldest, &page->state);
    atomic_store_explicit(&page->turn, turn + 2, memory_order_release);
}
