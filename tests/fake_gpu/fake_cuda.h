/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the CUDA driver: functions that tests call in addition to NVIDIA's, and
 * functions for the stand-in for NCCL. See README.md. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image that cuModuleLoadData accepts, besides fat binaries. */
#define FAKE_KERNEL_IMAGE "kernels of the stand-in"

struct fake_stream;

/* The number of objects that have not been released yet. */
struct fake_live {
    int device_memory;
    int peer_memory; /* memory of other processes that is open */
    int host_memory;
    int events;
    int streams;
    int contexts; /* number of retains */
    int comms;
    int modules; /* modules with kernels */
};

/* Returns the sum of all counters. */
static inline int fake_live_sum(const struct fake_live *live)
{
    return live->device_memory + live->peer_memory + live->host_memory + live->events +
           live->streams + live->contexts + live->comms + live->modules;
}

void fake_gpu_live(struct fake_live *live);
long fake_gpu_launches(void); /* number of kernel launches so far */

/* Makes the at-th call from now on fail, counting the calls of all functions of both
 * libraries; 0: no call. Returns the number of calls since counting last began. */
long fake_gpu_fail_at(long at);
/* Does the same, but counts only calls of this function. at < 0: the call -at and all
 * that follow fail. */
long fake_gpu_fail_in(const char *function, long at);
/* Kills the process in the at-th call of this function; NULL: of any function. */
void fake_gpu_die_in(const char *function, long at);
const char *fake_gpu_failed(void); /* the function that failed; NULL: none */

/* Whether the failed call ends an object, or selects the context for a call that does:
 * callers can neither undo nor report such a failure. */
bool fake_gpu_failed_at_end(void);

/* Whether the failed call allocates memory: the caller then tries again. */
bool fake_gpu_failed_memory(void);

/* Whether the failed call loads kernels: the caller then works without kernels, and
 * reports no error. */
bool fake_gpu_failed_kernels(void);

/* Whether the failed call measures a time or asks for the id of a stream: the work then
 * continues without the answer. */
bool fake_gpu_failed_dispensable(void);

/* Counts a call of this function by the program. Returns whether the call has to fail.
 * Kills the process if a test wants it to die in this call. */
bool fake_gpu_fails(const char *function);

/* Returns the number of calls of this function so far. FAKE_NCCL_LAUNCH: the number of
 * groups, and of collectives outside of groups. FAKE_NCCL_THREAD: the number of threads
 * that the real NCCL would have started for non-blocking ones. */
long fake_gpu_calls(const char *function);
void fake_gpu_count_call(const char *function);

#define FAKE_NCCL_LAUNCH "a launch of NCCL"
#define FAKE_NCCL_THREAD "a thread for a launch"

void fake_gpu_count_comm(int change);

/* Limits memory: from now on, this many more bytes of device memory and of pinned memory
 * can be allocated; 0: no limit. */
void fake_gpu_limit(size_t device_bytes, size_t host_bytes);

/* Moves the device's clock forward. */
void fake_gpu_skip_time(double ms);

/* fake_gpu_device returns the device whose context is current on this thread, -1 if there
 * is none. fake_gpu_device_of returns the device of a stream; NULL: the default stream.
 */
int fake_gpu_device(void);
int fake_gpu_device_of(const struct fake_stream *stream);

bool fake_gpu_is_on_switch(void); /* value of FAKE_GPU_MULTICAST */
void fake_gpu_bus_id(char *id, size_t bytes); /* for the device of the current context */

/* Runs call(argument) on the stream, in its turn. The call then owns argument. */
void fake_gpu_enqueue(struct fake_stream *stream, void (*call)(void *argument),
                      void *argument);

/* Translates an address of device memory into the address at which the stand-in itself
 * accesses the bytes. Returns other addresses as they are, and NULL if only some of the
 * bytes are in a piece of device memory. */
void *fake_gpu_reach(const void *address, size_t bytes);

/* Translates an address for an operation that runs on the thread of a stream. The bytes
 * must be memory of the stream's device, or pinned memory; otherwise prints a message
 * that begins with `who`, and ends the process. */
void *fake_gpu_touch(const char *who, const void *address, size_t bytes);

#endif
