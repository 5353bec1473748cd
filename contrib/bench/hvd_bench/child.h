/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that measures on behalf of a rank, and is spoken to in lines:
 *
 *   hvd-bench says                          the child answers
 *   load                                    ok                     its library is there
 *   serve LAYOUT                            at PORT                (of rank 0 only)
 *   join HOST PORT RANK SIZE ...            ok                     it has joined the others
 *   work COLLECTIVE DTYPE OP COUNT          ok                     COUNT: elements of the input
 *   check                                   ok
 *   run CALLS                               SECONDS
 *
 * join also says local rank and size, cross rank and size; LAYOUT is "2,2". A child that cannot do
 * that answers "no REASON", and "wrong REASON" when a result is wrong. Answers come when all is
 * done, so that children and their parents never run at the same time. A child ends when its input
 * does. */
#ifndef HVD_BENCH_CHILD_H
#define HVD_BENCH_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

struct bench_child {
    const char *name;
    pid_t pid;
    FILE *to;
    FILE *from;
};

/* Starts a program. Its standard input and output are the conversation. name: of the peer, for
 * messages; borrowed. argv and environment, of what it gets, are NULL-terminated, as for execve.
 * HVD_ERR_UNSUPPORTED when it cannot be started. */
int bench_child_start(struct bench_child *child, const char *name, char *const *argv,
                      char *const *environment, struct hvd_error *err);

/* Asks, and waits for the answer; both are lines, here without their newlines.
 * HVD_ERR_UNSUPPORTED for "no", HVD_ERR_MISMATCH for "wrong", HVD_ERR_PEER when it has ended. */
int bench_child_ask(struct bench_child *child, const char *question, char *answer,
                    size_t room, struct hvd_error *err);

/* Ends it and waits for that. Zeroed is fine. */
void bench_child_stop(struct bench_child *child);

#endif
