/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernels of the stand-in. The source of the GPU kernels is compiled as C
 * here. A launch runs a kernel thread by thread, on the stand-in's view of device memory.
 * A kernel that waits for other ranks runs block by block, up to a barrier at a time, in
 * random order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/gpu/module/kernel_body.h"
#include "collectives/gpu/module/kernel_poison.h"
#include "collectives/gpu/module/kernel_push.h"
#include "collectives/gpu/module/kernel_sum.h"
#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

struct fake_kernel {
    const char *name;
    void (*run)(const struct hvd_kernel_work *work, uint32_t block, uint32_t thread);
    int64_t tile;
    size_t from_size;
    size_t to_size;
    /* Instead of run, reduction kernels have add, the poison kernel has poison, and
     * kernels that push have pack and finish. */
    void (*add)(const struct hvd_kernel_sum *sum, uint32_t block, uint32_t thread);
    void (*poison)(const struct hvd_kernel_poison *poison, uint32_t block,
                   uint32_t thread);
    void (*pack)(const struct hvd_kernel_push *push, uint32_t block, uint32_t thread);
    void (*finish)(const struct hvd_kernel_push *push, uint32_t block, uint32_t thread,
                   bool is_aborted);
};

/* The arguments of one launch. */
struct launched {
    const struct fake_kernel *kernel;
    uint32_t blocks;
    struct hvd_kernel_work work;
    struct hvd_kernel_sum sum;
    struct hvd_kernel_poison poison;
    struct hvd_kernel_push push;
};

enum {
    HVD_UINT8 = 1, /* in this file: the size of the type */
    HVD_INT8 = 1,
    HVD_FLOAT16 = 2,
    HVD_BFLOAT16 = 2,
    HVD_INT32 = 4,
    HVD_UINT32 = 4,
    HVD_FLOAT32 = 4,
    HVD_INT64 = 8,
    HVD_UINT64 = 8,
    HVD_FLOAT64 = 8,
};

#define KERNEL(NAME, FROM, TO)                                                           \
    {.name = "hvd_" #NAME,                                                               \
     .run = hvd_kernel_##NAME,                                                           \
     .tile = HVD_KERNEL_TILE,                                                            \
     .from_size = (FROM),                                                                \
     .to_size = (TO)},
#define SUM(NAME, TYPE)                                                                  \
    {.name = "hvd_" #NAME,                                                               \
     .add = hvd_kernel_##NAME,                                                           \
     .tile = HVD_KERNEL_SUM_TILE,                                                        \
     .to_size = (TYPE)},
#define PUSH(NAME, TENSOR, SLOT)                                                         \
    {.name = "hvd_" #NAME,                                                               \
     .pack = hvd_pack_##NAME,                                                            \
     .finish = hvd_finish_##NAME,                                                        \
     .from_size = (TENSOR),                                                              \
     .to_size = (SLOT)},
static const struct fake_kernel kernels[] = {
    {.name = "hvd_copy",
     .run = hvd_kernel_copy,
     .tile = HVD_KERNEL_COPY_TILE,
     .from_size = 1,
     .to_size = 1},
    {.name = "hvd_poison", .poison = hvd_kernel_poison},
    HVD_KERNEL_LIST(KERNEL) HVD_KERNEL_SUM_LIST(SUM) HVD_KERNEL_PUSH_LIST(PUSH)};
#undef KERNEL
#undef SUM
#undef PUSH

enum {
    KERNELS = sizeof(kernels) / sizeof(kernels[0]),
};

/* Kernels loaded into a context. */
struct fake_module {
    struct fake_function {
        const struct fake_kernel *kernel;
        const struct fake_context *context;
    } functions[KERNELS];
};

static _Atomic long launches;

HVD_EXPORT long fake_gpu_launches(void)
{
    return launches;
}

/* Whether NVIDIA's fatbinary made the image. */
static bool is_fat_binary(const void *image)
{
    const uint32_t magic = 0xba55ed50;

    return memcmp(image, &magic, sizeof(magic)) == 0;
}

/* Accepts fat binaries, and the image that tests use if nothing is compiled for GPUs. */
static bool is_image(const void *image)
{
    return is_fat_binary(image) || strcmp(image, FAKE_KERNEL_IMAGE) == 0;
}

static uint64_t number_at(const char *address, size_t bytes)
{
    uint64_t number = 0;

    memcpy(&number, address, bytes);
    return number;
}

/* Whether a part of the fat binary suits a GPU of this architecture: a binary for the
 * same major and no later minor version, or PTX for no later version. */
static bool suits(const char *image, uint64_t architecture)
{
    uint64_t at = number_at(image + 6, 2), end = at + number_at(image + 8, 8);

    while (at < end) {
        const char *part = image + at;
        uint64_t of = number_at(part + 28, 4);
        bool is_ptx = number_at(part, 2) == 1;

        if (of <= architecture && (is_ptx || of / 10 == architecture / 10)) {
            return true;
        }
        at += number_at(part + 4, 4) + number_at(part + 8, 8);
    }
    return false;
}

static int load(struct fake_module **out)
{
    struct fake_module *module = calloc(1, sizeof(*module));

    if (module == NULL) {
        return FAKE_OUT_OF_MEMORY;
    }
    for (int i = 0; i < KERNELS; i++) {
        module->functions[i].kernel = &kernels[i];
        module->functions[i].context = fake_current();
    }
    fake_count(&fake_counters()->modules, 1);
    *out = module;
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuModuleLoadData(struct fake_module **out, const void *image)
{
    const char *refused = getenv("FAKE_GPU_KERNELS");
    const char *architecture = getenv("FAKE_GPU_ARCHITECTURE");
    int error;

    if (fake_capture_forbids("cuModuleLoadData")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    error = fake_begin("cuModuleLoadData");
    if (error != FAKE_SUCCESS || !is_image(image)) {
        return error != FAKE_SUCCESS ? error : FAKE_INVALID_VALUE;
    }
    if (refused != NULL) {
        return atoi(refused);
    }
    if (architecture != NULL && is_fat_binary(image) &&
        !suits(image, strtoul(architecture, NULL, 10))) {
        return FAKE_NO_BINARY;
    }
    return load(out);
}

HVD_EXPORT int cuModuleUnload(struct fake_module *module)
{
    fake_begin_end("cuModuleUnload");
    fake_drain_streams(module->functions[0].context);
    free(module);
    fake_count(&fake_counters()->modules, -1);
    return fake_gpu_fails("cuModuleUnload") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuModuleGetFunction(const struct fake_function **out,
                                   const struct fake_module *module, const char *name)
{
    int error = fake_begin("cuModuleGetFunction");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    for (int i = 0; i < KERNELS; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            *out = &module->functions[i];
            return FAKE_SUCCESS;
        }
    }
    return FAKE_NOT_FOUND;
}

static void *touch(const void *address, size_t bytes)
{
    return fake_gpu_touch("a kernel", address, bytes);
}

/* Replaces the addresses of the work by those of the stand-in's own view of the
 * memory. */
static void reach_pieces(struct launched *launched)
{
    struct hvd_kernel_work *work = &launched->work;
    const struct fake_kernel *kernel = launched->kernel;
    int64_t tiles = 0;

    for (int i = 0; i < work->count; i++) {
        size_t count = (size_t)work->counts[i];

        tiles += (work->counts[i] + kernel->tile - 1) / kernel->tile;
        if (tiles != work->ends[i]) {
            fprintf(stderr, "fake GPU: a kernel is told wrong tiles\n");
            abort();
        }
        work->to[i] = touch(work->to[i], count * kernel->to_size);
        if (work->from[i] != NULL) {
            work->from[i] = touch(work->from[i], count * kernel->from_size);
        }
    }
    if (tiles != launched->blocks) {
        fprintf(stderr, "fake GPU: a kernel is launched with another number of blocks\n");
        abort();
    }
}

static void reach_sources(struct launched *launched)
{
    struct hvd_kernel_sum *sum = &launched->sum;
    size_t bytes = (size_t)sum->count * launched->kernel->to_size;
    int64_t tiles = (sum->count + HVD_KERNEL_SUM_TILE - 1) / HVD_KERNEL_SUM_TILE;

    if (tiles != launched->blocks || sum->sources < 2 || sum->self < 0 ||
        sum->self >= sum->sources || sum->stride < (int64_t)bytes) {
        fprintf(stderr, "fake GPU: a kernel that adds up is told nonsense\n");
        abort();
    }
    sum->to = touch(sum->to, bytes);
    sum->own = touch(sum->own, bytes);
    sum->others = touch(sum->others, (size_t)(sum->stride * (sum->sources - 2)) + bytes);
}

static void reach_results(struct launched *launched)
{
    struct hvd_kernel_poison *poison = &launched->poison;

    if (poison->count < 1 || (uint32_t)poison->count != launched->blocks) {
        fprintf(stderr, "fake GPU: a kernel that poisons is told nonsense\n");
        abort();
    }
    for (int i = 0; i < poison->count; i++) {
        poison->to[i] = touch(poison->to[i], (size_t)poison->counts[i] * poison->size);
    }
}

/* Replaces the addresses of tensors and inboxes, those of other processes, too. */
static void reach_inboxes(struct launched *launched)
{
    struct hvd_kernel_push *push = &launched->push;
    uint32_t group = HVD_KERNEL_VECTOR / (uint32_t)launched->kernel->to_size;
    uint32_t vectors = 0;

    for (int i = 0; i < push->count && push->begin[i] == vectors; i++) {
        size_t bytes = push->counts[i] * launched->kernel->from_size;

        vectors += (push->counts[i] + group - 1) / group;
        push->from[i] = push->from[i] != NULL ? touch(push->from[i], bytes) : NULL;
        push->to[i] = push->to[i] != NULL ? touch(push->to[i], bytes) : NULL;
    }
    if (vectors == 0 || vectors != push->vectors || push->rank >= push->ranks ||
        push->ranks > HVD_KERNEL_RANKS || launched->blocks > HVD_KERNEL_BLOCKS ||
        (vectors - 1) / push->block_vectors + 1 != launched->blocks ||
        vectors * HVD_KERNEL_VECTOR > push->slot_bytes) {
        fprintf(stderr, "fake GPU: a kernel that pushes is told nonsense\n");
        abort();
    }
    /* if they share a GPU, a block that does not run lets those of other ranks wait */
    if (launched->blocks * (fake_is_shared() ? (uint32_t)push->ranks : 1) >
        (uint32_t)fake_multiprocessors()) {
        fprintf(stderr, "fake GPU: not all blocks of a kernel that waits may run\n");
        abort();
    }
    for (int i = 0; i < push->ranks; i++) {
        push->inboxes[i] =
            touch(push->inboxes[i],
                  HVD_KERNEL_HEAD_BYTES + 2 * (size_t)push->ranks * push->slot_bytes);
    }
}

static uint32_t threads_of(const struct fake_kernel *kernel)
{
    return kernel->poison != NULL ? HVD_KERNEL_POISON_THREADS : HVD_KERNEL_THREADS;
}

static void reach_all(struct launched *launched)
{
    if (launched->kernel->pack != NULL) {
        reach_inboxes(launched);
    } else if (launched->kernel->poison != NULL) {
        reach_results(launched);
    } else if (launched->kernel->add != NULL) {
        reach_sources(launched);
    } else {
        reach_pieces(launched);
    }
}

/* --- kernels that wait for other ranks --- */

enum {
    LOOKS = 64, /* how many of a GPU's looks for a flag a look here stands for */
};

/* Lets other ranks get ahead of a block, half of the time. */
static void pause_block(uint32_t random)
{
    struct timespec moment = {.tv_nsec = (long)(random >> 14 & 0xffff)};

    if (random >> 31 == 0) {
        nanosleep(&moment, NULL);
    }
}

static void pack_block(const struct launched *launched, uint32_t block)
{
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        launched->kernel->pack(&launched->push, block, thread);
    }
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        hvd_push_tell(&launched->push, block, thread);
    }
}

/* Returns whether the block has ended; it has not if it has to wait. */
static bool finish_block(const struct launched *launched, uint32_t block, uint32_t turn,
                         uint32_t random)
{
    bool is_aborted = false;

    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        enum hvd_push_state state = hvd_push_look(&launched->push, block, thread, turn);

        if (state == HVD_PUSH_PENDING) {
            return false;
        }
        is_aborted |= state == HVD_PUSH_ABORTED;
    }
    pause_block(random);
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        launched->kernel->finish(&launched->push, block, thread, is_aborted);
    }
    return true;
}

static void run_push(const struct launched *launched)
{
    uint32_t turns[HVD_KERNEL_BLOCKS] = {0}; /* 0: the block has not begun */
    bool has_ended[HVD_KERNEL_BLOCKS] = {false};
    uint32_t random = (uint32_t)launched->push.call * 64 + (uint32_t)launched->push.rank;
    uint32_t left = launched->blocks, block;

    while (left > 0) {
        random = random * 1664525u + 1013904223u;
        block = (random >> 8) % launched->blocks;
        if (turns[block] == 0) {
            pack_block(launched, block);
            turns[block] = 1;
            pause_block(random);
        } else if (!has_ended[block]) {
            has_ended[block] = finish_block(launched, block, turns[block], random);
            left -= has_ended[block] ? 1 : 0;
            turns[block] = turns[block] == 1 ? LOOKS : turns[block] + LOOKS;
        }
        if (left > 0 && turns[block] > 1 && !has_ended[block]) {
            pause_block(random);
        }
    }
}

static void run_kernel(void *argument)
{
    struct launched *launched = argument;
    const struct fake_kernel *kernel = launched->kernel;

    reach_all(launched);
    if (kernel->pack != NULL) {
        run_push(launched);
        free(launched);
        return;
    }
    for (uint32_t block = 0; block < launched->blocks; block++) {
        for (uint32_t thread = 0; thread < threads_of(kernel); thread++) {
            if (kernel->poison != NULL) {
                kernel->poison(&launched->poison, block, thread);
            } else if (kernel->add != NULL) {
                kernel->add(&launched->sum, block, thread);
            } else {
                kernel->run(&launched->work, block, thread);
            }
        }
    }
    free(launched);
}

/* Like the driver, requires that stream and kernel belong to the current context. */
static int check_launch(const struct fake_function *function,
                        const struct fake_stream *stream)
{
    int error = fake_begin("cuLaunchKernel");

    return error != FAKE_SUCCESS ? error
           : function->context != fake_current() ||
                   function->context != fake_stream_context(stream)
               ? FAKE_INVALID_HANDLE
               : FAKE_SUCCESS;
}

HVD_EXPORT int cuLaunchKernel(const struct fake_function *function, unsigned grid_x,
                              unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              struct fake_stream *stream, void **parameters, void **extra)
{
    const struct fake_kernel *kernel = function->kernel;
    struct launched *launched;
    int error = check_launch(function, stream);

    if (error != FAKE_SUCCESS) {
        return error;
    }
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != threads_of(kernel) ||
        block_y != 1 || block_z != 1 || shared_bytes != 0 || extra != NULL) {
        return FAKE_INVALID_VALUE;
    }
    launched = malloc(sizeof(*launched));
    if (launched == NULL) {
        return FAKE_OUT_OF_MEMORY;
    }
    launches++;
    launched->kernel = kernel;
    launched->blocks = grid_x;
    if (kernel->pack != NULL) {
        memcpy(&launched->push, parameters[0], sizeof(launched->push));
    } else if (kernel->poison != NULL) {
        memcpy(&launched->poison, parameters[0], sizeof(launched->poison));
    } else if (kernel->add != NULL) {
        memcpy(&launched->sum, parameters[0], sizeof(launched->sum));
    } else {
        memcpy(&launched->work, parameters[0], sizeof(launched->work));
    }
    fake_gpu_enqueue(stream, run_kernel, launched);
    return FAKE_SUCCESS;
}
