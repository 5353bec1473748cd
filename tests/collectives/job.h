/* SPDX-License-Identifier: Apache-2.0 */
/* A job of real processes on this machine, for tests: each rank is a forked child with a
 * made-up boot; the test plays the launcher and can kill ranks. Ranks on "hosts" of
 * different names behave as on different nodes. */
#ifndef HVD_TEST_JOB_H
#define HVD_TEST_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"

enum {
    JOB_MAX_RANKS = 64,
    JOB_LIMIT_S = 120, /* no process of a job lives longer */
    JOB_LINE_BYTES = 1024,
};

/* In a rank. */
struct job_rank {
    struct hvd_boot boot;
    int fd; /* to the test */
    const void *addresses[JOB_MAX_RANKS]; /* after job_exchange */
    size_t bytes[JOB_MAX_RANKS];
};

/* What a rank does; the value is its exit code. */
typedef int (*job_body)(struct job_rank *self, const void *argument);

/* In the test. */
struct job {
    int size;
    pid_t pids[JOB_MAX_RANKS];
    int fds[JOB_MAX_RANKS];
};

/* Starts one rank for each host name; a name list "a a b" gives ranks 0, 1 on a, 2 on
 * b. */
void job_start(struct job *job, const char *hosts, job_body body, const void *argument);

/* In every rank, with job_serve_exchange in the test: hands everyone's card to
 * everyone. */
void job_exchange(struct job_rank *self, const void *card, size_t bytes);
void job_serve_exchange(struct job *job);

/* The two halves of job_exchange, for a rank that has other things to do in between. */
void job_offer(struct job_rank *self, const void *card, size_t bytes);
void job_collect(struct job_rank *self);

/* The card that a rank gave in the last exchange. */
const void *job_card(int rank, size_t *bytes);

/* A rank says a line; the test hears the next line of a rank. False after timeout_ms. */
void job_say(struct job_rank *self, const char *format, ...) HVD_PRINTF(2, 3);
bool job_hear(struct job *job, int rank, int timeout_ms, char line[JOB_LINE_BYTES]);

/* A rank waits for, and the test gives, a sign to go on. */
void job_await(struct job_rank *self);
void job_signal(struct job *job, int rank);

/* Waits for the end of a rank: its exit code, or 128 + signal. */
int job_wait(struct job *job, int rank);

/* Kills what is left of a job and frees it. True when each rank exited with 0, other than
 * those that job_wait or job_kill has taken care of. */
bool job_finish(struct job *job);

void job_kill(struct job *job, int rank);

#endif
