/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL: what its parts share. See README.md. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include "tests/fake_gpu/fake_cuda.h"
#include "tests/fake_gpu/fake_link.h"
#include "tests/fake_gpu/fake_reduce.h"

enum {
    FAKE_MOST_SCALED = 64,
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
    _Atomic int under_way; /* groups on streams */
    _Atomic int error; /* ncclResult_t of what was on a stream */
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

/* On a stream: calls is a list, of one communicator; freed. */
void fake_calls_run(void *calls);

#endif
