/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_kernels MODULE [MIB [TURNS]]: measures how fast the kernels of hvd_gpu.so move MIB
 * of tensors on a GPU. Prints a Markdown table; for comparison it also has a single copy
 * on the device, and one copy for each tensor. Bytes read and bytes written both count.
 * The variants take turns; each figure is the median of TURNS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives/gpu/gpu_module.h"
#include "contrib/bench/median.h"
#include "gpu_binding/base/clock.h"

enum {
    MOST_TURNS = 101,
    REPEATS = 5, /* launches in a turn, one after the other */
};

struct variant {
    const char *name;
    enum hvd_gpu_step_kind kind;
    int64_t piece_bytes; /* bytes of a piece of the input; 0: the input is one piece */
    enum hvd_dtype from;
    enum hvd_dtype to;
    double factor;
    double seconds[MOST_TURNS];
};

static struct variant variants[] = {
    {"one copy", HVD_GPU_COPY, 0, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"kernel, one piece", HVD_GPU_MOVE, 0, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"kernel, pieces of 1 MiB", HVD_GPU_MOVE, 1 << 20, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"kernel, pieces of 64 KiB", HVD_GPU_MOVE, 1 << 16, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"copies of 64 KiB", HVD_GPU_COPY, 1 << 16, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"kernel, pieces of 4 KiB", HVD_GPU_MOVE, 1 << 12, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"copies of 4 KiB", HVD_GPU_COPY, 1 << 12, HVD_UINT8, HVD_UINT8, 1, {0}},
    {"float32 scaled", HVD_GPU_MOVE, 0, HVD_FLOAT32, HVD_FLOAT32, 0.5, {0}},
    {"float16 scaled", HVD_GPU_MOVE, 0, HVD_FLOAT16, HVD_FLOAT16, 0.5, {0}},
    {"int32 scaled", HVD_GPU_MOVE, 0, HVD_INT32, HVD_INT32, 0.5, {0}},
    {"bfloat16 to float32", HVD_GPU_MOVE, 0, HVD_BFLOAT16, HVD_FLOAT32, 1, {0}},
    {"float32 to bfloat16", HVD_GPU_MOVE, 0, HVD_FLOAT32, HVD_BFLOAT16, 1, {0}},
};

static const int variant_count = sizeof(variants) / sizeof(variants[0]);

static const struct hvd_gpu_module *module;
static struct hvd_gpu_device *device;
static struct hvd_gpu_event *done;
static char *from, *to;
static int64_t total;

static void must_succeed(int status, const struct hvd_error *err)
{
    if (status != 0) {
        fprintf(stderr, "gpu_kernels: %s\n", err->text);
        exit(1);
    }
}

static void ignore(void *context)
{
    (void)context;
}

static double run_steps(struct hvd_gpu_step *steps, int count)
{
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .steps = steps, .count = count, .done = done};
    struct hvd_error err = {0};
    int64_t begin_ns = hvd_clock_ns();
    int status;

    module->submit(device, &work);
    while ((status = atomic_load(&work.status)) == HVD_INPROGRESS) {
    }
    must_succeed(status, &work.error);
    while ((status = module->event_test(done, &err)) == HVD_INPROGRESS) {
    }
    must_succeed(status, &err);
    return (double)(hvd_clock_ns() - begin_ns) * 1e-9;
}

static int64_t width(enum hvd_dtype dtype)
{
    return (int64_t)hvd_dtype_bytes(dtype);
}

/* Returns the bytes of a variant's input, chosen so that the larger of input and output
 * has `total` bytes. */
static int64_t input_bytes(const struct variant *variant)
{
    return width(variant->to) > width(variant->from)
               ? total / width(variant->to) * width(variant->from)
               : total;
}

static double moved_bytes(const struct variant *variant)
{
    double in = (double)input_bytes(variant);

    return REPEATS * in * (1 + (double)width(variant->to) / (double)width(variant->from));
}

static double time_variant(const struct variant *variant)
{
    int64_t bytes = input_bytes(variant);
    int64_t piece = variant->piece_bytes > 0 ? variant->piece_bytes : bytes;
    int count = (int)(bytes / piece);
    struct hvd_gpu_step *steps = calloc((size_t)count * REPEATS, sizeof(steps[0]));
    double seconds;

    if (steps == NULL) {
        fprintf(stderr, "gpu_kernels: no memory\n");
        exit(1);
    }
    for (int i = 0; i < count * REPEATS; i++) {
        int64_t at = i % count * piece;

        steps[i] = (struct hvd_gpu_step){.kind = variant->kind,
                                         .from = from + at,
                                         .to = to + at / width(variant->from) *
                                                        width(variant->to),
                                         .count = piece / width(variant->from),
                                         .dtype = variant->from,
                                         .to_dtype = variant->to,
                                         .factor = variant->factor};
    }
    seconds = run_steps(steps, count * REPEATS);
    free(steps);
    return seconds;
}

static void open_all(const char *path)
{
    const struct hvd_gpu_opening opening = {.wake = ignore};
    void *handle = dlopen(path, RTLD_NOW);
    struct hvd_error err = {0};
    void *memory = NULL;

    module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    if (module == NULL) {
        fprintf(stderr, "gpu_kernels: %s\n", dlerror());
        exit(1);
    }
    must_succeed(module->open(&opening, &device, &err), &err);
    if (module->no_kernels(device) != NULL) {
        printf("no kernels: %s\n", module->no_kernels(device));
        exit(77);
    }
    must_succeed(module->event_create(device, &done, &err), &err);
    must_succeed(
        module->alloc(device, HVD_GPU_DEVICE_MEMORY, (size_t)total, &memory, &err), &err);
    from = memory;
    must_succeed(
        module->alloc(device, HVD_GPU_DEVICE_MEMORY, (size_t)total, &memory, &err), &err);
    to = memory;
}

static void close_all(void)
{
    module->stop(device, 5000);
    module->free(device, HVD_GPU_DEVICE_MEMORY, from);
    module->free(device, HVD_GPU_DEVICE_MEMORY, to);
    module->event_destroy(done);
    module->close(device);
}

int main(int argc, char **argv)
{
    long mib = argc > 2 ? atol(argv[2]) : 256;
    int turns = argc > 3 ? atoi(argv[3]) : 15;
    double copy = 0;

    if (argc < 2 || mib < 1 || turns < 1 || turns > MOST_TURNS) {
        fprintf(stderr, "usage: gpu_kernels MODULE [MIB [TURNS]]\n");
        return 2;
    }
    total = (int64_t)mib << 20;
    open_all(argv[1]);
    for (int turn = -1; turn < turns; turn++) { /* the first turn warms up */
        for (int i = 0; i < variant_count; i++) {
            variants[i].seconds[turn < 0 ? 0 : turn] = time_variant(&variants[i]);
        }
    }
    printf("| %ld MiB | GB/s | of one copy |\n|---|---|---|\n", mib);
    for (int i = 0; i < variant_count; i++) {
        double speed =
            moved_bytes(&variants[i]) / median(variants[i].seconds, turns) * 1e-9;

        copy = i == 0 ? speed : copy;
        printf("| %s | %.1f | %.0f %% |\n", variants[i].name, speed, 100 * speed / copy);
    }
    close_all();
    return 0;
}
