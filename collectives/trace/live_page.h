/* SPDX-License-Identifier: Apache-2.0 */
/* The page on which a rank notes what it is doing. hvd-info reads it from outside.
 *
 * The page is a memory file (memfd) that the rank keeps open. A process of the same user,
 * or of root, reads it through /proc/PID/fd. This needs no help from the rank: it works
 * even if the rank is stopped or hangs in Python. The page vanishes with the rank. Only
 * for the stack of the main thread, the rank has to answer a question.
 *
 * While the rank works, it only counts its collectives. Before it sleeps, it lists its
 * tensors in flight. If the counts have changed since then, the list is outdated. */
#ifndef HVD_LIVE_PAGE_H
#define HVD_LIVE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define HVD_LIVE_PAGE_FILE "hvd-live" /* the name of the memory file */

enum {
    HVD_LIVE_MAGIC = 0x33657668, /* "hve3"; must change with the layout */
    HVD_LIVE_TENSORS = 4,
    HVD_LIVE_TEXT = 112,
    HVD_LIVE_STACK = 4096,
};

enum hvd_live_phase {
    HVD_LIVE_CONNECTING, /* init has found all ranks, and connects to them */
    HVD_LIVE_RUNNING,
    HVD_LIVE_LEAVING, /* shutdown has begun */
};

/* A tensor in flight. */
struct hvd_live_tensor {
    int64_t submitted_ns; /* hvd_clock_ns */
    int32_t set; /* the process set */
    char operation[HVD_LIVE_TEXT]; /* "allreduce 'gradient'" */
};

/* Written before the rank sleeps. */
struct hvd_live_record {
    int64_t written_ns; /* hvd_clock_ns: since when the rank has done nothing else */
    uint64_t begun, ended; /* the counts at that time */
    int32_t count; /* of the tensors below; begun - ended are in flight */
    int32_t waiting; /* whether threads of the program wait for a request */
    int32_t messages; /* whether sends or receives are in flight */
    struct hvd_live_tensor tensors[HVD_LIVE_TENSORS]; /* the oldest ones */
};

struct hvd_live_page {
    uint32_t magic; /* HVD_LIVE_MAGIC, written last */
    uint32_t bytes; /* of the struct */
    /* these do not change */
    int32_t pid; /* in the rank's own pid namespace */
    int32_t rank, size;
    uint64_t number; /* identifies the job: the same on all of its ranks */
    uint32_t slurm_job, slurm_step; /* 0: not in a Slurm job */
    char host[64];
    /* these change at any time */
    _Atomic int32_t phase; /* enum hvd_live_phase */
    _Atomic uint64_t begun; /* collectives that the rank has submitted */
    _Atomic uint64_t ended; /* collectives that have ended */
    _Atomic uint64_t steps; /* steps of the optimizer; 0: not counted */
    _Atomic uint32_t turn; /* odd while `state` is written */
    struct hvd_live_record state;
    /* The stack of the main thread. To ask for it, hvd-info raises stack_asked and wakes
     * this futex; a thread of the rank writes the stack, and then the same number into
     * stack_told, also a futex. stack_told is 0 while `stack` is written. */
    _Atomic uint32_t stack_asked;
    _Atomic uint32_t stack_told;
    char stack[HVD_LIVE_STACK]; /* lines: stack/stack.h */
};

#endif
