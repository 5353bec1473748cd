/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the CUDA driver: what tests may ask of it beyond NVIDIA's functions, and
 * what the stand-in for NCCL needs. See README.md. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What cuModuleLoadData takes besides fat binaries. */
#define FAKE_KERNEL_IMAGE "kernels of the stand-in"

struct fake_stream;

/* What is not given back yet. */
struct fake_live {
    int device_memory;
    int host_memory;
    int events;
    int streams;
    int contexts; /* retained */
    int comms;
    int modules; /* of kernels */
};

/* All together. */
static inline int fake_live_sum(const struct fake_live *live)
{
    return live->device_memory + live->host_memory + live->events + live->streams +
           live->contexts + live->comms + live->modules;
}

void fake_gpu_live(struct fake_live *live);
long fake_gpu_launches(void); /* of kernels, so far */

/* The at-th call from now on, of any function of both libraries, fails; 0: none. Returns
 * how many calls there were since the last time. */
long fake_gpu_fail_at(long at);
long fake_gpu_fail_in(const char *function, long at); /* likewise, of this one */
/* In the at-th call of this function, NULL: of any, the process is killed. */
void fake_gpu_die_in(const char *function, long at);
const char *fake_gpu_failed(void); /* the function that did, NULL: none has */

/* Whether what has failed was to end a thing, or to choose the context for that: nobody
 * can undo it, and nobody has to tell of it. */
bool fake_gpu_failed_at_end(void);

/* Whether it was to get memory: then it is tried again. */
bool fake_gpu_failed_memory(void);

/* Whether it was to load kernels: then there are none, which is no failure. */
bool fake_gpu_failed_kernels(void);

/* Whether it was to tell how long something took: what that was for goes on without. */
bool fake_gpu_failed_measuring(void);

/* Whether this call has to fail. Each function of both libraries asks first. */
bool fake_gpu_fails(const char *function);

void fake_gpu_count_comm(int change);

/* From now on there is room for so many more bytes of device memory and of pinned memory;
 * 0: for any number. */
void fake_gpu_limit(size_t device_bytes, size_t host_bytes);

/* The device's clock goes forward by so much. */
void fake_gpu_skip_time(double ms);

/* The device whose context is the thread's, -1: none is; and that of a stream, NULL: of
 * the default one. */
int fake_gpu_device(void);
int fake_gpu_device_of(const struct fake_stream *stream);

bool fake_gpu_is_on_switch(void); /* FAKE_GPU_MULTICAST */
void fake_gpu_bus_id(char *id, size_t bytes); /* of the device whose context this is */

/* Runs call(argument) on the stream, in its turn; then argument is the call's own. */
void fake_gpu_enqueue(struct fake_stream *stream, void (*call)(void *argument),
                      void *argument);

/* Where the stand-in itself reads and writes what is at an address of the program: all
 * bytes are in one piece of device memory, or outside of all. NULL: they are not. */
void *fake_gpu_reach(const void *address, size_t bytes);

/* Likewise, for what runs on a device, on the thread of a stream: memory of that device,
 * or pinned memory. Anything else ends the process; who: in the words for that. */
void *fake_gpu_touch(const char *who, const void *address, size_t bytes);

#endif
