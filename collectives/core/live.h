/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the page of this rank, which hvd-info reads (trace/live_page.h).
 *
 * Threads: the progress lock is held, unless a function says otherwise. */
#ifndef HVD_LIVE_H
#define HVD_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/trace/live_page.h"
#include "gpu_binding/base/error.h"

struct hvd_job;

struct hvd_live {
    struct hvd_live_page *page;
    int fd; /* -1: nobody can read the page */
    int32_t written_phase; /* when the state was last written */
};

/* Opens the page, as soon as the rank and the job's size are known. If no memory file can
 * be made, the job runs with a page that only this rank sees. Fails only if memory is
 * full. */
int hvd_live_open(struct hvd_job *job, struct hvd_error *err);
/* Closes the file of the page, so that hvd-info finds no old page. is_free: nothing of
 * this process uses the page any more, and its memory goes, too. Accepts a zeroed one. */
void hvd_live_close(struct hvd_live *live, bool is_free);

/* Returns the page, borrowed until hvd_live_close, for the reader of stacks. */
struct hvd_live_page *hvd_live_page_of(const struct hvd_live *live);

static inline void hvd_live_add(_Atomic uint64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Count a collective when it begins, and when it ends. */
static inline void hvd_live_begin(const struct hvd_live *live)
{
    hvd_live_add(&live->page->begun);
}

static inline void hvd_live_end(const struct hvd_live *live)
{
    hvd_live_add(&live->page->ended);
}

/* Counts a step of the optimizer. Any thread, but one at a time. */
static inline void hvd_live_step(const struct hvd_live *live)
{
    hvd_live_add(&live->page->steps);
}

static inline int64_t hvd_live_steps(const struct hvd_live *live)
{
    return (int64_t)atomic_load_explicit(&live->page->steps, memory_order_relaxed);
}

/* Writes the phase of the job. Any thread may call it. */
static inline void hvd_live_enter(const struct hvd_live *live, enum hvd_live_phase phase)
{
    atomic_store(&live->page->phase, (int32_t)phase);
}

/* Writes what the rank waits for. Call it before the driver sleeps. */
void hvd_live_write(struct hvd_job *job, int64_t now_ns);

#endif
