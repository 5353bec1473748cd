/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads the stack of the main thread (stack/stack.h): when hvd-info asks
 * by the page of the rank (trace/live_page.h), and when other ranks wait for this one. On
 * rank 0, it also writes the stacks of late ranks to the file of HVD_STACKS. It is not
 * the thread that drives the job, because a slow file system may delay it for long.
 *
 * It sleeps in a futex in the page, and costs the job nothing meanwhile.
 *
 * Threads: the progress lock is held, except for open and close. */
#ifndef HVD_STACKS_H
#define HVD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_job;
struct hvd_stack_reader;

enum {
    HVD_STACKS_SHOWN = 4, /* stacks that rank 0 remembers */
};

struct hvd_stacks {
    struct hvd_stack_reader *reader; /* NULL: stacks are not read */
    uint32_t asked; /* the question of another rank; 0: none */
    /* rank 0: what it has shown last, so that it shows no stack twice */
    struct hvd_stack_answer {
        char *text; /* NULL: none */
        int rank;
    } shown[HVD_STACKS_SHOWN];
    unsigned replaced; /* stacks that have made room for others */
};

/* Starts the thread, unless HVD_STACKS=0. The page must be open. If there can be no
 * thread, the job runs without. Fails only if memory is full. */
int hvd_stacks_open(struct hvd_job *job, struct hvd_error *err);

/* Ends the thread. Returns false if it hangs in a file system and still uses the page,
 * which must then stay. Accepts a zeroed struct. */
bool hvd_stacks_close(struct hvd_stacks *stacks);

/* Begins to read the stack for another rank. The driver is woken when it is there. */
void hvd_stacks_ask(struct hvd_stacks *stacks);

/* Takes the stack that was asked for. Returns false if none was, or it is not there yet.
 * text: valid until the next call. "" if this rank does not show its stack. */
bool hvd_stacks_take(struct hvd_stacks *stacks, const char **text);

/* Rank 0: warns that others wait for this rank, with the first lines of its stack, and
 * writes the stack to the file. If the rank is where it was, the warning only says so. */
void hvd_stacks_show(struct hvd_job *job, int rank, const char *text);

#endif
