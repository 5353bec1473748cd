/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reduction kernels with the host's reductions. */
#include "tests/collectives/gpu/module/kernel_sums.h"

#include <string.h>

#include "collectives/reduce/reduce.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/gpu/module/kernel_arena.h"
#include "tests/collectives/gpu/module/kernel_reference.h"
#include "tests/tap.h"

static const enum hvd_op sum_ops[] = {HVD_SUM, HVD_PRODUCT, HVD_MIN, HVD_MAX};

enum {
    MOST_SOURCES = 9, /* number of sources to reduce */
    MOST_SUM = 20001, /* bytes of each source */
    SUM_OPS = sizeof(sum_ops) / sizeof(sum_ops[0])
};

/* Plans a reduction. All sources are in arena.memory[0], with the rank's own source
 * (`own`) behind the others. The output is in arena.memory[1], or replaces `own`. Unless
 * aligned, addresses are random: such elements are processed one by one or by bytes. */
static struct hvd_gpu_step plan_sum(enum hvd_dtype dtype, enum hvd_op op, bool is_aligned)
{
    const int64_t size = (int64_t)reference_bytes(dtype);
    struct hvd_gpu_step step = {.kind = HVD_GPU_SUM_UP,
                                .dtype = dtype,
                                .op = op,
                                .sources = 2 + (int)arena_random_below(MOST_SOURCES - 1),
                                .count =
                                    1 + (int64_t)arena_random_below(MOST_SUM) / size};
    int64_t skew = is_aligned ? 0 : 1 + (int64_t)arena_random_below(15);

    step.peer = (int)arena_random_below((size_t)step.sources);
    step.stride = (step.count * size + 255) / 256 * 256 + skew;
    step.from = arena.memory[0] + skew;
    step.own = arena.memory[0] + skew + (step.sources - 1) * step.stride;
    step.to =
        arena_random_below(3) == 0 ? (char *)(uintptr_t)step.own : arena.memory[1] + skew;
    return step;
}

/* Runs a reduction. Compares the result with the host's, which is computed from aligned
 * copies, and checks that nothing else was written. */
static bool try_sum(enum hvd_dtype dtype, enum hvd_op op, bool is_aligned)
{
    static _Alignas(16) char aligned[MOST_SOURCES][(MOST_SUM + 31) / 16 * 16],
        expected[MOST_SUM + 16];
    const struct hvd_gpu_step step = plan_sum(dtype, op, is_aligned);
    const struct hvd_reduction reduction = hvd_reduction_of(dtype, op);
    size_t bytes = (size_t)step.count * reference_bytes(dtype), differs = 0;
    char *side =
        (char *)step.to == (const char *)step.own ? arena.memory[0] : arena.memory[1];
    size_t to = (size_t)((char *)step.to - side);
    const void *sources[MOST_SOURCES];

    memset(arena.from_host, 0x11, sizeof(arena.from_host));
    for (int i = 0; i < step.sources; i++) {
        int other = i < step.peer ? i : i - 1;
        const char *at =
            i == step.peer ? step.own : (const char *)step.from + other * step.stride;

        arena_fill(dtype, aligned[i], (size_t)step.count);
        memcpy(arena.from_host + (at - arena.memory[0]), aligned[i], bytes);
        sources[i] = aligned[i];
    }
    hvd_reduce(&reduction, sources, step.sources, (size_t)step.count, expected);
    memset(arena.before, 0x22, sizeof(arena.before));
    gpu_copy(arena.memory[0], arena.from_host, ARENA, arena.stream);
    gpu_copy(arena.memory[1], arena.before, ARENA, arena.stream);
    gpu_finish(arena.stream);
    arena.steps[0] = step;
    if (!arena_run(1)) {
        return false;
    }
    gpu_copy(arena.after, side, ARENA, arena.stream);
    gpu_finish(arena.stream);
    while (differs < bytes && arena.after[to + differs] == expected[differs]) {
        differs++;
    }
    memcpy((side == arena.memory[0] ? arena.from_host : arena.before) + to, expected,
           bytes);
    if (differs < bytes) {
        tap_note("%s, op %d, %d sources, own %d: byte %zu of %zu differs",
                 reference_name(dtype), (int)op, step.sources, step.peer, differs, bytes);
    }
    return memcmp(arena.after, side == arena.memory[0] ? arena.from_host : arena.before,
                  ARENA) == 0;
}

bool kernel_sums_are_right(enum hvd_dtype dtype)
{
    bool good = true;

    for (int i = 0; i < 5 * SUM_OPS && good; i++) {
        good = try_sum(dtype, sum_ops[i % SUM_OPS], i < 3 * SUM_OPS);
    }
    return good;
}
