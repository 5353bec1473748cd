/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the kernels with a simple reference, on the stand-in or a device:
 * gpu_kernels_test MODULE. */
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/gpu/module/kernel_arena.h"
#include "tests/collectives/gpu/module/kernel_reference.h"
#include "tests/collectives/gpu/module/kernel_sums.h"
#include "tests/tap.h"

enum {
    GAP = 64, /* the largest gap between two pieces, in bytes */
};

struct pair {
    enum hvd_dtype from;
    enum hvd_dtype to;
    uint32_t divisor; /* integers are divided by this; 1: no division */
};

static const struct pair pairs[] = {
    {HVD_UINT8, HVD_UINT8, 1},      {HVD_INT8, HVD_INT8, 1},
    {HVD_INT32, HVD_INT32, 1},      {HVD_INT64, HVD_INT64, 1},
    {HVD_UINT32, HVD_UINT32, 1},    {HVD_UINT64, HVD_UINT64, 1},
    {HVD_FLOAT16, HVD_FLOAT16, 1},  {HVD_BFLOAT16, HVD_BFLOAT16, 1},
    {HVD_FLOAT32, HVD_FLOAT32, 1},  {HVD_FLOAT64, HVD_FLOAT64, 1},
    {HVD_FLOAT16, HVD_FLOAT32, 1},  {HVD_FLOAT32, HVD_FLOAT16, 1},
    {HVD_BFLOAT16, HVD_FLOAT32, 1}, {HVD_FLOAT32, HVD_BFLOAT16, 1},
    {HVD_FLOAT32, HVD_FLOAT64, 1},  {HVD_FLOAT64, HVD_FLOAT32, 1},
};

/* Plans `most` pieces, one behind the other in the input and in the output. Sizes are
 * random, and so are addresses unless aligned. Returns the number of pieces. */
static int plan_pieces(struct pair pair, double factor, int most, bool is_aligned)
{
    size_t at = is_aligned ? 0 : arena_random_below(GAP),
           to_at = is_aligned ? 0 : arena_random_below(GAP);
    size_t from_size = reference_bytes(pair.from), to_size = reference_bytes(pair.to);
    size_t share = ARENA / (size_t)most;
    int count = 0;

    while (count < most) {
        size_t bytes = arena_random_below(4) == 0 ? share - 2 * GAP : 400;
        size_t elements =
            arena_random_below(bytes / (from_size > to_size ? from_size : to_size) + 1);

        arena.steps[count++] = (struct hvd_gpu_step){
            .kind = HVD_GPU_MOVE,
            .from = arena_random_below(16) == 0 ? NULL : arena.memory[0] + at,
            .to = arena.memory[1] + to_at,
            .count = (int64_t)elements,
            .dtype = pair.from,
            .to_dtype = pair.to,
            .factor = factor,
            .divisor = pair.divisor,
        };
        at += elements * from_size + arena_random_below(GAP);
        to_at += elements * to_size + arena_random_below(GAP);
        if (is_aligned) {
            at = (at + 15) / 16 * 16;
            to_at = (to_at + 15) / 16 * 16;
        }
    }
    return count;
}

static bool is_right(struct pair pair, double factor, const char *from, const char *got)
{
    uint64_t bits = 0, expected, is = 0;

    memcpy(&is, got, reference_bytes(pair.to));
    if (from != NULL) {
        memcpy(&bits, from, reference_bytes(pair.from));
    }
    expected =
        from == NULL ? 0 : reference_move(pair.from, pair.to, factor, pair.divisor, bits);
    if (is == expected || reference_are_nan(pair.to, is, expected)) {
        return true;
    }
    tap_note("%s to %s, times %a by %u: %#llx became %#llx, not %#llx",
             reference_name(pair.from), reference_name(pair.to), factor, pair.divisor,
             (unsigned long long)bits, (unsigned long long)is,
             (unsigned long long)expected);
    return false;
}

/* Checks every byte: elements must equal the reference, bytes between pieces must be
 * unchanged. */
static bool check_pieces(struct pair pair, double factor, int count)
{
    size_t from_size = reference_bytes(pair.from), to_size = reference_bytes(pair.to);
    char *at = arena.after;

    for (int i = 0; i < count; i++) {
        char *to = arena.after + ((char *)arena.steps[i].to - arena.memory[1]);
        const char *from =
            arena.steps[i].from != NULL
                ? arena.from_host + ((const char *)arena.steps[i].from - arena.memory[0])
                : NULL;

        for (; at < to; at++) {
            if (*at != arena.before[at - arena.after]) {
                tap_note("byte %d beside the pieces is written", (int)(at - arena.after));
                return false;
            }
        }
        for (int64_t j = 0; j < arena.steps[i].count; j++, at += to_size) {
            if (!is_right(pair, factor, from, at)) {
                tap_note("piece %d, element %lld of %lld, from %p to %p", i, (long long)j,
                         (long long)arena.steps[i].count, arena.steps[i].from,
                         arena.steps[i].to);
                return false;
            }
            from = from != NULL ? from + from_size : NULL;
        }
    }
    return memcmp(at, arena.before + (at - arena.after),
                  (size_t)(arena.after + ARENA - at)) == 0;
}

static bool try_once(struct pair pair, double factor, int pieces, bool is_aligned)
{
    int count = plan_pieces(pair, factor, pieces, is_aligned);

    memset(arena.from_host, 0x11, sizeof(arena.from_host));
    for (int i = 0; i < count; i++) {
        if (arena.steps[i].from != NULL) {
            arena_fill(pair.from,
                       arena.from_host +
                           ((const char *)arena.steps[i].from - arena.memory[0]),
                       (size_t)arena.steps[i].count);
        }
    }
    memset(arena.before, (int)arena_random_below(256), sizeof(arena.before));
    gpu_copy(arena.memory[0], arena.from_host, ARENA, arena.stream);
    gpu_copy(arena.memory[1], arena.before, ARENA, arena.stream);
    gpu_finish(arena.stream);
    if (!arena_run(count)) {
        return false;
    }
    gpu_copy(arena.after, arena.memory[1], ARENA, arena.stream);
    gpu_finish(arena.stream);
    return check_pieces(pair, factor, count);
}

static double random_factor(int round)
{
    static const double some[] = {0.5,  1.0 / 3, -3.0, 0x1p-20, 1e-40,
                                  1e30, 1e300,   0.0,  1.0,     65536.0};
    const size_t count = sizeof(some) / sizeof(some[0]);

    return some[((size_t)round + arena_random_below(count)) % count];
}

static const uint32_t divisors[] = {2, 3, 49, 200, 1024, INT32_MAX};

/* Tests the division that ends an average of integers. */
static void test_average(struct pair pair)
{
    const size_t count = sizeof(divisors) / sizeof(divisors[0]);
    bool good = true;

    for (size_t i = 0; i < 2 * count && good; i++) {
        pair.divisor = divisors[i / 2];
        good = try_once(pair, i % 2 == 0 ? 1.0 : random_factor((int)i), 5, i % 4 < 2);
    }
    tap_ok(good, "%s: all quotients are right", reference_name(pair.from));
}

static void test_pair(struct pair pair)
{
    static const int pieces[] = {1, 3, MOST_PIECES, 20};
    bool good = true;

    for (int i = 0; i < 8 && good; i++) {
        good = try_once(pair, random_factor(i), pieces[i / 2], i % 2 == 0);
    }
    tap_ok(good, "%s to %s: all numbers, sizes and addresses are right",
           reference_name(pair.from), reference_name(pair.to));
}

static void test_copies(void)
{
    const struct pair bytes = {HVD_UINT8, HVD_UINT8, 1};
    bool good = true;

    for (int i = 0; i < 12 && good; i++) {
        good = try_once(bytes, 1.0,
                        i % 3 == 0   ? 1
                        : i % 3 == 1 ? 9
                                     : MOST_PIECES,
                        i % 2 == 0);
    }
    tap_ok(good, "bytes of all sizes are copied at all addresses");
}

/* Scales in place, as hvd does for a large tensor. */
static void test_in_place(void)
{
    const struct pair same = {HVD_FLOAT16, HVD_FLOAT16, 1};
    int64_t count = 100001;
    bool good;

    arena_fill(same.from, arena.from_host, (size_t)count);
    gpu_copy(arena.memory[1], arena.from_host, ARENA, arena.stream);
    gpu_finish(arena.stream);
    memcpy(arena.before, arena.from_host, ARENA);
    arena.steps[0] = (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                           .from = arena.memory[1],
                                           .to = arena.memory[1],
                                           .count = count,
                                           .dtype = same.from,
                                           .to_dtype = same.to,
                                           .factor = 0.25};
    good = arena_run(1);
    gpu_copy(arena.after, arena.memory[1], ARENA, arena.stream);
    gpu_finish(arena.stream);
    /* check_pieces finds the input by this address */
    arena.steps[0].from = arena.memory[0];
    tap_ok(good && check_pieces(same, 0.25, 1), "float16 is scaled in place");
}

static const enum hvd_dtype summed[] = {
    HVD_UINT8,  HVD_INT8,    HVD_INT32,    HVD_INT64,   HVD_UINT32,
    HVD_UINT64, HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64,
};

int main(int argc, char **argv)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    if (!tap_ok(argc == 2 && arena_open(argv[1], seed), "the module can be loaded")) {
        return tap_done();
    }
    if (arena.module->no_kernels(arena.device) != NULL) {
        tap_skip("the kernels are right", arena.module->no_kernels(arena.device));
        return tap_done();
    }
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        test_pair(pairs[i]);
        if (!reference_is_float(pairs[i].from)) {
            test_average(pairs[i]);
        }
    }
    test_copies();
    test_in_place();
    for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++) {
        tap_ok(kernel_sums_are_right(summed[i]),
               "%s: sums, products, minima and maxima have the same bits as on the host",
               reference_name(summed[i]));
    }
    arena_close();
    return tap_done();
}
