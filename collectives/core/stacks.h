/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads the stack of the main thread (stack/stack.h) when hvd-info asks
 * by the page of the rank (trace/live_page.h). Another thread than the one that drives
 * the job, because reading files of libraries may take long.
 *
 * It sleeps in a futex in the page; nobody else needs to wake it, and it costs the job
 * nothing.
 *
 * Threads: those that open and close the job. */
#ifndef HVD_STACKS_H
#define HVD_STACKS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_job;
struct hvd_stack_reader;

struct hvd_stacks {
    struct hvd_stack_reader *reader; /* NULL: stacks are not read */
};

/* Starts the thread, unless HVD_STACKS=0. The page must be open. If there can be no
 * thread, the job runs without. Fails only if memory is full. */
int hvd_stacks_open(struct hvd_job *job, struct hvd_error *err);

/* Ends the thread. Returns false if it hangs in a file system and still uses the page,
 * which must then stay. Accepts a zeroed struct. */
bool hvd_stacks_close(struct hvd_stacks *stacks);

#endif
