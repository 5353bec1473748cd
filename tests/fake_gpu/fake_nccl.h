/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NCCL: declarations shared by its parts. See README.md. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include <pthread.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/fake_gpu/fake_link.h"
#include "tests/fake_gpu/fake_reduce.h"

enum {
    FAKE_MOST_SCALED = 64,
};

/* ncclResult_t */
enum {
    FAKE_NCCL_SUCCESS = 0,
    FAKE_CUDA_ERROR = 1,
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

struct fake_window;

struct fake_comm {
    struct fake_link link;
    /* the caller's configuration, if this version keeps a pointer to it */
    const struct fake_config *config;
    int device;
    /* the thread that made the communicator; only it may call ncclCommGetAsyncError */
    pthread_t owner;
    _Atomic int under_way; /* number of groups of calls on streams that have not ended */
    _Atomic int error; /* ncclResult_t of the calls on a stream */
    /* The following members are for the pending call of a non-blocking communicator. The
     * thread `job` completes it. */
    bool may_block;
    /* FAKE_IN_PROGRESS until the thread has ended, then its ncclResult_t */
    _Atomic int state;
    pthread_t job;
    bool has_job; /* the thread has not been joined yet */
    unsigned launches;
    struct fake_call *late; /* the calls that the thread launches */
    bool is_finalized;
    double scaled[FAKE_MOST_SCALED];
    bool has_scaled[FAKE_MOST_SCALED];
    /* fake_window.c */
    struct fake_window *windows;
    struct fake_window *registering;
    unsigned registrations;
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
    size_t done; /* bytes sent or received so far */
};

int fake_nccl_version(void);
/* Returns the result of a call: an error if a test makes this call fail. */
int fake_nccl_result(const char *function);

/* Opens the file of NCCL_DEBUG_FILE at the first call, as NCCL does: not for the level
 * VERSION or no level. */
void fake_nccl_begin_log(void);

/* Writes a warning to this file, else to stderr. source: "FILE:LINE" of NCCL. */
void fake_nccl_warn(const char *source, const char *format, ...) HVD_PRINTF(2, 3);

/* Whether the communicator's last call has ended; prints an error if not. */
bool fake_comm_is_ready(struct fake_comm *comm);

/* Runs a job of a non-blocking communicator in its thread, or, with NCCL_COMM_BLOCKING=1,
 * to its end. Returns the result of the call. */
int fake_comm_begin_job(struct fake_comm *comm, void *(*job)(void *comm));

/* Returns where an address is in the windows of a communicator, the same number on all
 * ranks if it is at the same offset; 0: in none. Ends the process if it is memory of
 * ncclMemAlloc that is in none. */
uint64_t fake_window_place(const struct fake_comm *comm, const void *address);
void fake_windows_drop(struct fake_comm *comm); /* as an abort does */

/* Puts calls on their stream. In every second launch of a non-blocking communicator, a
 * thread does this later, and the function returns FAKE_IN_PROGRESS. */
int fake_comm_launch(struct fake_comm *comm, struct fake_call *calls);

/* Runs a list of calls of one communicator, on the thread of a stream, and frees it. */
void fake_calls_run(void *calls);

#endif
