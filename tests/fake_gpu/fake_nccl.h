/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL: what its parts share. See README.md. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include <pthread.h>

#include "tests/fake_gpu/fake_cuda.h"
#include "tests/fake_gpu/fake_link.h"
#include "tests/fake_gpu/fake_reduce.h"

enum {
    FAKE_MOST_SCALED = 64,
};

/* ncclResult_t */
enum {
    FAKE_NCCL_SUCCESS = 0,
    FAKE_SYSTEM_ERROR = 2,
    FAKE_INVALID_ARGUMENT = 4,
    FAKE_INVALID_USAGE = 5,
    FAKE_IN_PROGRESS = 7,
};

struct fake_id {
    char name[FAKE_NAME];
};

/* ncclConfig_t of 2.14 */
struct fake_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};

enum fake_call_kind {
    FAKE_ALL_REDUCE = 1,
    FAKE_ALL_GATHER,
    FAKE_BROADCAST,
    FAKE_REDUCE_SCATTER,
    FAKE_REDUCE,
    FAKE_SEND,
    FAKE_RECV,
};

struct fake_comm {
    struct fake_link link;
    const struct fake_config *config; /* NULL: NCCL does not need it any more */
    int device;
    pthread_t owner; /* launches, and may ask for errors */
    _Atomic int under_way; /* groups on streams */
    _Atomic int error; /* ncclResult_t of what was on a stream */
    /* What one that may not block does meanwhile. */
    bool may_block;
    _Atomic int state; /* FAKE_IN_PROGRESS until job has ended, then its ncclResult_t */
    pthread_t job;
    bool has_job; /* not joined yet */
    unsigned launches;
    struct fake_call *late; /* what job launches */
    bool is_finalized;
    double scaled[FAKE_MOST_SCALED];
    bool has_scaled[FAKE_MOST_SCALED];
};

struct fake_call {
    struct fake_call *next;
    struct fake_comm *comm;
    struct fake_stream *stream;
    enum fake_call_kind kind;
    const void *from;
    void *to;
    size_t count;
    int dtype;
    int op;
    double factor;
    int peer;
    size_t done; /* bytes, of send and recv */
};

int fake_nccl_version(void);
int fake_nccl_result(
    const char *function); /* of a call that may be the one that has to fail */

/* Whether its last call has ended; says so if not. */
bool fake_comm_is_ready(struct fake_comm *comm);

/* Puts calls on their stream: at once, or, every second time of one that may not block,
 * later, and FAKE_IN_PROGRESS is returned. */
int fake_comm_launch(struct fake_comm *comm, struct fake_call *calls);

/* On a stream: calls is a list, of one communicator; freed. */
void fake_calls_run(void *calls);

#endif
