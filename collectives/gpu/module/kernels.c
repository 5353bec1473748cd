/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the kernels from the image in the module, and launches them for steps. */
#include "collectives/gpu/module/kernels.h"

#include <stdio.h>

#include "collectives/gpu/module/kernel_image.h"
#include "collectives/gpu/module/inbox.h"
#include "gpu_binding/base/error.h"

enum {
    VECTOR_BYTES = 16, /* HVD_KERNEL_VECTOR */
};

_Static_assert(sizeof(struct hvd_kernel_push) <= 4096, "the arguments of a launch");
_Static_assert((int)HVD_GPU_PUSH_TENSORS == (int)HVD_KERNEL_PIECES &&
                   (int)HVD_GPU_PUSH_RANKS == (int)HVD_KERNEL_RANKS,
               "the limits of a launch");

struct kernel {
    const char *name;
    enum hvd_dtype from;
    enum hvd_dtype to;
};

#define KERNEL(NAME, FROM, TO) {"hvd_" #NAME, FROM, TO},
static const struct kernel kernels_known[HVD_KERNEL_COUNT] = {
    {"hvd_copy", HVD_UINT8, HVD_UINT8}, HVD_KERNEL_LIST(KERNEL)};
#undef KERNEL

struct sum_kernel {
    const char *name;
    enum hvd_dtype dtype;
};

#define KERNEL(NAME, TYPE) {"hvd_" #NAME, TYPE},
static const struct sum_kernel sums_known[HVD_KERNEL_SUM_COUNT] = {
    HVD_KERNEL_SUM_LIST(KERNEL)};
#undef KERNEL

#define KERNEL(NAME, TENSOR, SLOT) {"hvd_" #NAME, TENSOR, SLOT},
static const struct kernel pushes_known[HVD_KERNEL_PUSH_COUNT] = {
    HVD_KERNEL_PUSH_LIST(KERNEL)};
#undef KERNEL

static void tell_problem(struct hvd_gpu_kernels *kernels, const char *function, int error)
{
    const char *name = NULL;

    kernels->cuda->error_name(error, &name);
    snprintf(kernels->problem, sizeof(kernels->problem),
             "%s failed: %s %d: the driver does not accept the kernels, which were built "
             "for %s",
             function, name != NULL ? name : "error", error, hvd_kernel_image.built);
}

/* Allocates the flag of hvd_poison. If that fails, results are not poisoned. */
static void make_flag(struct hvd_gpu_kernels *kernels)
{
    void *memory;

    if (kernels->cuda->host_alloc(&memory, sizeof(*kernels->aborted),
                                  CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS) {
        kernels->aborted = memory;
        *kernels->aborted = 0;
    }
}

void hvd_kernels_load(struct hvd_gpu_kernels *kernels, const struct hvd_cuda *cuda)
{
    const char *function = "cuModuleLoadData";
    int error;

    kernels->cuda = cuda;
    if (hvd_kernel_image.data == NULL) {
        snprintf(kernels->problem, sizeof(kernels->problem), "%s",
                 hvd_kernel_image.built);
        return;
    }
    error = cuda->module_load(&kernels->module, hvd_kernel_image.data);
    if (error != CUDA_SUCCESS) {
        kernels->module = NULL;
    }
    for (int i = 0; i < HVD_KERNEL_COUNT && error == CUDA_SUCCESS; i++) {
        function = "cuModuleGetFunction";
        error = cuda->module_function(&kernels->functions[i], kernels->module,
                                      kernels_known[i].name);
    }
    for (int i = 0; i < HVD_KERNEL_SUM_COUNT && error == CUDA_SUCCESS; i++) {
        function = "cuModuleGetFunction";
        error =
            cuda->module_function(&kernels->sums[i], kernels->module, sums_known[i].name);
    }
    for (int i = 0; i < HVD_KERNEL_PUSH_COUNT && error == CUDA_SUCCESS; i++) {
        function = "cuModuleGetFunction";
        error = cuda->module_function(&kernels->pushes[i], kernels->module,
                                      pushes_known[i].name);
    }
    if (error == CUDA_SUCCESS) {
        error = cuda->module_function(&kernels->poison, kernels->module, "hvd_poison");
    }
    if (error != CUDA_SUCCESS) {
        hvd_kernels_unload(kernels);
        tell_problem(kernels, function, error);
        return;
    }
    make_flag(kernels);
}

void hvd_kernels_unload(struct hvd_gpu_kernels *kernels)
{
    if (kernels->module != NULL) {
        kernels->cuda->module_unload(kernels->module);
    }
    kernels->module = NULL;
    if (kernels->aborted != NULL) {
        kernels->cuda->host_free((void *)(uintptr_t)kernels->aborted);
    }
    kernels->aborted = NULL;
}

/* --- launching --- */

/* Returns the index of the kernel for a step, -1 if there is none. */
static int find_kernel(const struct hvd_gpu_step *step)
{
    int first = step->factor == 1.0 && step->divisor <= 1 ? 0 : 1;

    for (int i = first; i < HVD_KERNEL_COUNT; i++) {
        if (kernels_known[i].from == step->dtype &&
            kernels_known[i].to == step->to_dtype) {
            return i;
        }
    }
    return -1;
}

static bool goes_along(const struct hvd_gpu_step *first, const struct hvd_gpu_step *next)
{
    return next->kind == HVD_GPU_MOVE && next->dtype == first->dtype &&
           next->to_dtype == first->to_dtype && next->factor == first->factor &&
           next->divisor == first->divisor;
}

static uint32_t tiles_of(int kernel, int64_t count)
{
    int64_t tile = kernel == 0 ? HVD_KERNEL_COPY_TILE : HVD_KERNEL_TILE;

    return (uint32_t)((count + tile - 1) / tile);
}

/* Fills the work with as many of the first steps as one launch can do. Returns their
 * number. */
static int gather_steps(struct hvd_kernel_work *work, int kernel,
                        const struct hvd_gpu_step *steps, int count)
{
    uint32_t tiles = 0;
    int taken = 0;

    work->factor = steps[0].factor;
    work->divisor = steps[0].divisor;
    work->count = 0;
    while (taken < count && work->count < HVD_KERNEL_PIECES &&
           goes_along(&steps[0], &steps[taken])) {
        const struct hvd_gpu_step *step = &steps[taken++];

        if (step->count > 0) {
            tiles += tiles_of(kernel, step->count);
            work->from[work->count] = step->from;
            work->to[work->count] = step->to;
            work->counts[work->count] = step->count;
            work->ends[work->count++] = tiles;
        }
    }
    return taken;
}

int hvd_kernels_launch(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count, struct hvd_error *err)
{
    struct hvd_kernel_work work;
    void *parameters[] = {&work};
    int kernel = find_kernel(steps), taken, error;

    if (kernels->problem[0] != '\0') {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no kernels: %s", kernels->problem);
    }
    if (kernel < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "no kernel converts dtype %d to dtype %d", (int)steps[0].dtype,
                        (int)steps[0].to_dtype);
    }
    taken = gather_steps(&work, kernel, steps, count);
    if (work.count == 0) {
        return taken;
    }
    error =
        kernels->cuda->launch(kernels->functions[kernel], work.ends[work.count - 1], 1, 1,
                              HVD_KERNEL_THREADS, 1, 1, 0, stream, parameters, NULL);
    return error == CUDA_SUCCESS
               ? taken
               : hvd_cuda_fail(kernels->cuda, "cuLaunchKernel", error, err);
}

/* --- poisoning --- */

void hvd_kernels_tell_abort(const struct hvd_gpu_kernels *kernels)
{
    if (kernels->aborted != NULL) {
        *kernels->aborted = 1;
    }
}

/* Returns arguments of hvd_poison with the NaN of the type and no results yet. */
static struct hvd_kernel_poison poison_of(enum hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT16:
        return (struct hvd_kernel_poison){.nan = 0x7e00, .size = 2};
    case HVD_BFLOAT16:
        return (struct hvd_kernel_poison){.nan = 0x7fc0, .size = 2};
    case HVD_FLOAT32:
        return (struct hvd_kernel_poison){.nan = 0x7fc00000, .size = 4};
    default:
        return (struct hvd_kernel_poison){.nan = 0x7ff8000000000000, .size = 8};
    }
}

int hvd_kernels_poison(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count, struct hvd_error *err)
{
    struct hvd_kernel_poison poison = poison_of(steps[0].dtype);
    void *parameters[] = {&poison};
    int taken = 0, error;

    while (taken < count && poison.count < HVD_KERNEL_PIECES &&
           steps[taken].kind == HVD_GPU_POISON && steps[taken].dtype == steps[0].dtype) {
        poison.to[poison.count] = steps[taken].to;
        poison.counts[poison.count++] = steps[taken++].count;
    }
    poison.aborted = kernels->aborted;
    if (poison.aborted == NULL) {
        return taken;
    }
    error = kernels->cuda->launch(kernels->poison, (unsigned)poison.count, 1, 1,
                                  HVD_KERNEL_POISON_THREADS, 1, 1, 0, stream, parameters,
                                  NULL);
    return error == CUDA_SUCCESS
               ? taken
               : hvd_cuda_fail(kernels->cuda, "cuLaunchKernel", error, err);
}

/* --- adding up --- */

static int sum_op(enum hvd_op op)
{
    switch (op) {
    case HVD_SUM:
        return HVD_KERNEL_PLUS;
    case HVD_PRODUCT:
        return HVD_KERNEL_TIMES;
    case HVD_MIN:
        return HVD_KERNEL_LESSER;
    case HVD_MAX:
        return HVD_KERNEL_GREATER;
    default:
        return -1;
    }
}

/* Returns the index of the reduction kernel for the type, -1 if there is none. */
static int find_sum(enum hvd_dtype dtype)
{
    for (int i = 0; i < HVD_KERNEL_SUM_COUNT; i++) {
        if (sums_known[i].dtype == dtype) {
            return i;
        }
    }
    return -1;
}

int hvd_kernels_sum(const struct hvd_gpu_kernels *kernels, CUstream stream,
                    const struct hvd_gpu_step *step, struct hvd_error *err)
{
    struct hvd_kernel_sum sum = {.others = step->from,
                                 .own = step->own,
                                 .to = step->to,
                                 .stride = step->stride,
                                 .count = step->count,
                                 .sources = step->sources,
                                 .self = step->peer,
                                 .op = sum_op(step->op)};
    void *parameters[] = {&sum};
    int kernel = find_sum(step->dtype), error;

    if (kernels->problem[0] != '\0') {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no kernels: %s", kernels->problem);
    }
    if (kernel < 0 || sum.op < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no kernel reduces dtype %d with op %d",
                        (int)step->dtype, (int)step->op);
    }
    error = kernels->cuda->launch(
        kernels->sums[kernel],
        (unsigned)((step->count + HVD_KERNEL_SUM_TILE - 1) / HVD_KERNEL_SUM_TILE), 1, 1,
        HVD_KERNEL_THREADS, 1, 1, 0, stream, parameters, NULL);
    return error == CUDA_SUCCESS
               ? 0
               : hvd_cuda_fail(kernels->cuda, "cuLaunchKernel", error, err);
}

/* --- one kernel for a batch --- */

/* Returns the index of the kernel for a step, -1 if there is none. */
static int find_push(const struct hvd_gpu_step *step)
{
    for (int i = 0; i < HVD_KERNEL_PUSH_COUNT; i++) {
        if (pushes_known[i].from == step->dtype && pushes_known[i].to == step->to_dtype) {
            return i;
        }
    }
    return -1;
}

/* Adds the tensors of all steps. Returns the number of steps. */
static int gather_tensors(struct hvd_kernel_push *push, const struct hvd_gpu_step *steps,
                          int count)
{
    uint32_t group = VECTOR_BYTES / poison_of(steps[0].to_dtype).size;
    int taken = 0;

    while (taken < count && steps[taken].kind == HVD_GPU_PUSH &&
           push->count < HVD_KERNEL_PIECES) {
        const struct hvd_gpu_step *step = &steps[taken++];

        if (step->count > 0) {
            push->begin[push->count] = push->vectors;
            push->counts[push->count] = (uint32_t)step->count;
            push->from[push->count] = step->from;
            push->to[push->count++] = step->to;
            push->vectors += ((uint32_t)step->count + group - 1) / group;
        }
    }
    return taken;
}

/* Divides the vectors among as few blocks as keep every thread busy. The result is the
 * same on all ranks. Returns the number of blocks. */
static uint32_t cut_blocks(struct hvd_kernel_push *push, uint32_t most)
{
    uint32_t blocks = (push->vectors + HVD_KERNEL_THREADS - 1) / HVD_KERNEL_THREADS;

    blocks = blocks < most ? blocks : most;
    push->block_vectors = (push->vectors + blocks - 1) / blocks;
    return (push->vectors + push->block_vectors - 1) / push->block_vectors;
}

int hvd_kernels_push(const struct hvd_gpu_kernels *kernels, CUstream stream,
                     const struct hvd_gpu_step *steps, int count, struct hvd_error *err)
{
    struct hvd_kernel_push push = {.before = steps[0].factor,
                                   .after = steps[0].after,
                                   .nan = poison_of(steps[0].dtype).nan,
                                   .aborted = kernels->aborted};
    void *parameters[] = {&push};
    int kernel = find_push(&steps[0]), taken, error;
    uint32_t blocks;

    if (kernel < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no kernel sends dtype %d as dtype %d",
                        (int)steps[0].dtype, (int)steps[0].to_dtype);
    }
    taken = gather_tensors(&push, steps, count);
    if (push.count == 0) {
        return taken;
    }
    blocks = cut_blocks(&push, hvd_inbox_begin(steps[0].inbox, &push));
    error = kernels->cuda->launch(kernels->pushes[kernel], blocks, 1, 1,
                                  HVD_KERNEL_THREADS, 1, 1, 0, stream, parameters, NULL);
    return error == CUDA_SUCCESS
               ? taken
               : hvd_cuda_fail(kernels->cuda, "cuLaunchKernel", error, err);
}
