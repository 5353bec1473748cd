/* SPDX-License-Identifier: Apache-2.0 */
/* The memory in which kernels are tested. */
#include "tests/collectives/gpu/module/kernel_arena.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/gpu/module/kernel_reference.h"
#include "tests/tap.h"

struct kernel_arena arena;

static uint64_t state;

uint64_t arena_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 32) ^ (state << 17);
}

size_t arena_random_below(size_t limit)
{
    return (size_t)(arena_random() >> 3) % limit;
}

static void ignore(void *context)
{
    (void)context;
}

bool arena_run(int count)
{
    const struct timespec moment = {.tv_nsec = 50000};
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT,
                                .steps = arena.steps,
                                .count = count,
                                .done = arena.done};
    struct hvd_error err = {0};
    int status = HVD_INPROGRESS;

    arena.module->submit(arena.device, &work);
    while (atomic_load(&work.status) == HVD_INPROGRESS) {
        nanosleep(&moment, NULL);
    }
    err = work.error;
    status = atomic_load(&work.status);
    for (status = status == 0 ? HVD_INPROGRESS : status; status == HVD_INPROGRESS;) {
        status = arena.module->event_test(arena.done, &err);
    }
    if (status != 0) {
        tap_note("%d %s", status, err.text);
    }
    return status == 0;
}

void arena_fill(enum hvd_dtype dtype, char *to, size_t count)
{
    size_t size = reference_bytes(dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = arena_random();

        if (bits % 4 == 0) {
            bits = reference_special(dtype, (unsigned)(bits >> 8));
        } else if (bits % 4 == 1) {
            bits = reference_small(dtype, bits);
        }
        memcpy(to + i * size, &bits, size);
    }
}

bool arena_open(const char *path, unsigned seed)
{
    struct hvd_gpu_opening opening = {.wake = ignore};
    void *handle = dlopen(path, RTLD_NOW);
    struct hvd_error err = {0};

    state = seed;
    arena.module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    if (arena.module == NULL) {
        tap_note("%s", dlerror());
        return false;
    }
    if (!gpu_open()) {
        return false;
    }
    opening.device = gpu_number();
    if (arena.module->open(&opening, &arena.device, &err) != 0 ||
        arena.module->event_create(arena.device, &arena.done, &err) != 0) {
        tap_note("%s", err.text);
        return false;
    }
    arena.stream = gpu_stream();
    arena.memory[0] = gpu_memory(ARENA);
    arena.memory[1] = gpu_memory(ARENA);
    return true;
}

void arena_close(void)
{
    arena.module->stop(arena.device, 5000);
    arena.module->event_destroy(arena.done);
    arena.module->close(arena.device);
}
