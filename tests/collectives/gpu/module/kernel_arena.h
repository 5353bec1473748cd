/* SPDX-License-Identifier: Apache-2.0 */
/* Device and host memory in which kernels are tested, the module that runs the kernels,
 * and random numbers for the tests. */
#ifndef KERNEL_ARENA_H
#define KERNEL_ARENA_H

#include "collectives/gpu/gpu_module.h"

enum {
    ARENA = 4 << 20, /* bytes of the input and of the output */
    MOST_PIECES = 400, /* more than fit in one launch */
};

struct kernel_arena {
    const struct hvd_gpu_module *module;
    struct hvd_gpu_device *device;
    struct hvd_gpu_event *done;
    void *stream;
    char *memory[2]; /* on the device */
    char from_host[ARENA], before[ARENA], after[ARENA];
    struct hvd_gpu_step steps[MOST_PIECES];
};

extern struct kernel_arena arena;

/* Loads the module and opens the device. If that fails, prints the reason and returns
 * false. */
bool arena_open(const char *path, unsigned seed);
void arena_close(void);

uint64_t arena_random(void);
size_t arena_random_below(size_t limit);

/* Fills in random elements. Some have few bits set or are at the limits of the type:
 * these show rounding errors. */
void arena_fill(enum hvd_dtype dtype, char *to, size_t count);

/* Runs the first `count` of arena.steps. Returns true when the device has done them. */
bool arena_run(int count);

#endif
