/* SPDX-License-Identifier: Apache-2.0 */
/* A job of real processes on this machine, for tests. Each rank is a forked child with a
 * made-up boot; the test acts as the launcher and can kill ranks. Ranks on "hosts" of
 * different names behave as if they were on different nodes. */
#ifndef HVD_TEST_JOB_H
#define HVD_TEST_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"

enum {
    JOB_MAX_RANKS = 64,
    JOB_LIMIT_S = 120, /* the most seconds that a process of a job lives */
    JOB_LINE_BYTES = 1024,
};

/* The job as a rank sees it. */
struct job_rank {
    struct hvd_boot boot;
    int fd; /* socket to the test */
    const void *addresses[JOB_MAX_RANKS]; /* after job_exchange */
    size_t bytes[JOB_MAX_RANKS];
};

/* The main function of a rank; returns its exit code. */
typedef int (*job_body)(struct job_rank *self, const void *argument);

/* The job as the test sees it. */
struct job {
    int size;
    pid_t pids[JOB_MAX_RANKS];
    int fds[JOB_MAX_RANKS];
};

/* Starts one rank for each host name: with the hosts "a a b" ranks 0 and 1 are on a, rank
 * 2 is on b. */
void job_start(struct job *job, const char *hosts, job_body body, const void *argument);

/* Give each rank's card to all ranks: every rank calls job_exchange, and the test calls
 * job_serve_exchange. */
void job_exchange(struct job_rank *self, const void *card, size_t bytes);
void job_serve_exchange(struct job *job);

/* The two halves of job_exchange, for a rank that has to do something else in between.
 * job_offer sends the card; job_collect receives all cards. */
void job_offer(struct job_rank *self, const void *card, size_t bytes);
void job_collect(struct job_rank *self);

/* Returns the card that a rank gave in the last exchange. */
const void *job_card(int rank, size_t *bytes);

/* Send a line from a rank to the test, and receive the next line from a rank. job_hear
 * returns false after timeout_ms. */
void job_say(struct job_rank *self, const char *format, ...) HVD_PRINTF(2, 3);
bool job_hear(struct job *job, int rank, int timeout_ms, char line[JOB_LINE_BYTES]);

/* Let a rank wait until the test signals it. */
void job_await(struct job_rank *self);
void job_signal(struct job *job, int rank);

/* Waits for the end of a rank; returns its exit code, or 128 + signal. */
int job_wait(struct job *job, int rank);

/* Waits for the remaining ranks and frees the job. Returns true if each of them exited
 * with 0; ranks that job_wait or job_kill has handled do not count. */
bool job_finish(struct job *job);

void job_kill(struct job *job, int rank);

#endif
