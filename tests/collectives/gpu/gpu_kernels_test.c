/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels against a plain reference, on the stand-in or a device: gpu_kernels_test
 * MODULE. */
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "collectives/gpu/gpu_module.h"
#include "collectives/reduce/reduce.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/gpu/kernel_reference.h"
#include "tests/tap.h"

enum {
    ARENA = 4 << 20, /* bytes of each side */
    MOST_PIECES = 400, /* more than one launch takes */
    GAP = 64, /* most bytes between two pieces */
    MOST_SOURCES = 9, /* that are added up */
    MOST_SUM = 20001, /* bytes of each */
};

struct pair {
    enum hvd_dtype from;
    enum hvd_dtype to;
};

static const struct pair pairs[] = {
    {HVD_UINT8, HVD_UINT8},      {HVD_INT8, HVD_INT8},         {HVD_INT32, HVD_INT32},
    {HVD_INT64, HVD_INT64},      {HVD_UINT32, HVD_UINT32},     {HVD_UINT64, HVD_UINT64},
    {HVD_FLOAT16, HVD_FLOAT16},  {HVD_BFLOAT16, HVD_BFLOAT16}, {HVD_FLOAT32, HVD_FLOAT32},
    {HVD_FLOAT64, HVD_FLOAT64},  {HVD_FLOAT16, HVD_FLOAT32},   {HVD_FLOAT32, HVD_FLOAT16},
    {HVD_BFLOAT16, HVD_FLOAT32}, {HVD_FLOAT32, HVD_BFLOAT16},  {HVD_FLOAT32, HVD_FLOAT64},
    {HVD_FLOAT64, HVD_FLOAT32},
};

static const struct hvd_gpu_module *module;
static struct hvd_gpu_device *device;
static struct hvd_gpu_event *done;
static void *stream;
static char *memory[2]; /* on the device */
static char from_host[ARENA], before[ARENA], after[ARENA];
static struct hvd_gpu_step steps[MOST_PIECES];
static uint64_t state;

static uint64_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 32) ^ (state << 17);
}

static size_t random_below(size_t limit)
{
    return (size_t)(random_bits() >> 3) % limit;
}

static void ignore(void *context)
{
    (void)context;
}

static bool run_steps(int count)
{
    const struct timespec moment = {.tv_nsec = 50000};
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .steps = steps, .count = count, .done = done};
    struct hvd_error err = {0};
    int status = HVD_INPROGRESS;

    module->submit(device, &work);
    while (atomic_load(&work.status) == HVD_INPROGRESS) {
        nanosleep(&moment, NULL);
    }
    err = work.error;
    status = atomic_load(&work.status);
    for (status = status == 0 ? HVD_INPROGRESS : status; status == HVD_INPROGRESS;) {
        status = module->event_test(done, &err);
    }
    if (status != 0) {
        tap_note("%d %s", status, err.text);
    }
    return status == 0;
}

/* Bits of every kind: rounding shows with few bits set, and at the limits. */
static void fill_elements(enum hvd_dtype dtype, char *to, size_t count)
{
    size_t size = reference_bytes(dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits();

        if (bits % 4 == 0) {
            bits = reference_special(dtype, (unsigned)(bits >> 8));
        } else if (bits % 4 == 1) {
            bits = reference_small(dtype, bits);
        }
        memcpy(to + i * size, &bits, size);
    }
}

/* Pieces one behind the other on both sides, of any number, size and, unless aligned,
 * address. Returns how many. */
static int plan_pieces(struct pair pair, double factor, int most, bool is_aligned)
{
    size_t at = is_aligned ? 0 : random_below(GAP),
           to_at = is_aligned ? 0 : random_below(GAP);
    size_t from_size = reference_bytes(pair.from), to_size = reference_bytes(pair.to);
    size_t share = ARENA / (size_t)most;
    int count = 0;

    while (count < most) {
        size_t bytes = random_below(4) == 0 ? share - 2 * GAP : 400;
        size_t elements =
            random_below(bytes / (from_size > to_size ? from_size : to_size) + 1);

        steps[count++] = (struct hvd_gpu_step){
            .kind = HVD_GPU_MOVE,
            .from = random_below(16) == 0 ? NULL : memory[0] + at,
            .to = memory[1] + to_at,
            .count = (int64_t)elements,
            .dtype = pair.from,
            .to_dtype = pair.to,
            .factor = factor,
        };
        at += elements * from_size + random_below(GAP);
        to_at += elements * to_size + random_below(GAP);
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
    expected = from == NULL ? 0 : reference_move(pair.from, pair.to, factor, bits);
    if (is == expected || reference_are_nan(pair.to, is, expected)) {
        return true;
    }
    tap_note("%s to %s, times %a: %#llx became %#llx, not %#llx",
             reference_name(pair.from), reference_name(pair.to), factor,
             (unsigned long long)bits, (unsigned long long)is,
             (unsigned long long)expected);
    return false;
}

/* Every byte: elements as the reference makes them, what lies between them untouched. */
static bool check_pieces(struct pair pair, double factor, int count)
{
    size_t from_size = reference_bytes(pair.from), to_size = reference_bytes(pair.to);
    char *at = after;

    for (int i = 0; i < count; i++) {
        char *to = after + ((char *)steps[i].to - memory[1]);
        const char *from = steps[i].from != NULL
                               ? from_host + ((const char *)steps[i].from - memory[0])
                               : NULL;

        for (; at < to; at++) {
            if (*at != before[at - after]) {
                tap_note("byte %d beside the pieces is written", (int)(at - after));
                return false;
            }
        }
        for (int64_t j = 0; j < steps[i].count; j++, at += to_size) {
            if (!is_right(pair, factor, from, at)) {
                tap_note("piece %d, element %lld of %lld, from %p to %p", i, (long long)j,
                         (long long)steps[i].count, steps[i].from, steps[i].to);
                return false;
            }
            from = from != NULL ? from + from_size : NULL;
        }
    }
    return memcmp(at, before + (at - after), (size_t)(after + ARENA - at)) == 0;
}

static bool try_once(struct pair pair, double factor, int pieces, bool is_aligned)
{
    int count = plan_pieces(pair, factor, pieces, is_aligned);

    memset(from_host, 0x11, sizeof(from_host));
    for (int i = 0; i < count; i++) {
        if (steps[i].from != NULL) {
            fill_elements(pair.from,
                          from_host + ((const char *)steps[i].from - memory[0]),
                          (size_t)steps[i].count);
        }
    }
    memset(before, (int)random_below(256), sizeof(before));
    gpu_copy(memory[0], from_host, ARENA, stream);
    gpu_copy(memory[1], before, ARENA, stream);
    gpu_finish(stream);
    if (!run_steps(count)) {
        return false;
    }
    gpu_copy(after, memory[1], ARENA, stream);
    gpu_finish(stream);
    return check_pieces(pair, factor, count);
}

static double random_factor(int round)
{
    static const double some[] = {0.5,  1.0 / 3, -3.0, 0x1p-20, 1e-40,
                                  1e30, 1e300,   0.0,  1.0,     65536.0};
    const size_t count = sizeof(some) / sizeof(some[0]);

    return some[((size_t)round + random_below(count)) % count];
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
    const struct pair bytes = {HVD_UINT8, HVD_UINT8};
    bool good = true;

    for (int i = 0; i < 12 && good; i++) {
        good = try_once(bytes, 1.0,
                        i % 3 == 0   ? 1
                        : i % 3 == 1 ? 9
                                     : MOST_PIECES,
                        i % 2 == 0);
    }
    tap_ok(good, "bytes: all sizes and addresses are copied");
}

/* As a large tensor is scaled. */
static void test_in_place(void)
{
    const struct pair same = {HVD_FLOAT16, HVD_FLOAT16};
    int64_t count = 100001;
    bool good;

    fill_elements(same.from, from_host, (size_t)count);
    gpu_copy(memory[1], from_host, ARENA, stream);
    gpu_finish(stream);
    memcpy(before, from_host, ARENA);
    steps[0] = (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                     .from = memory[1],
                                     .to = memory[1],
                                     .count = count,
                                     .dtype = same.from,
                                     .to_dtype = same.to,
                                     .factor = 0.25};
    good = run_steps(1);
    gpu_copy(after, memory[1], ARENA, stream);
    gpu_finish(stream);
    steps[0].from = memory[0]; /* where check_pieces looks */
    tap_ok(good && check_pieces(same, 0.25, 1), "in place");
}

/* --- adding up --- */

static const enum hvd_dtype summed[] = {
    HVD_UINT8,  HVD_INT8,    HVD_INT32,    HVD_INT64,   HVD_UINT32,
    HVD_UINT64, HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64,
};

static const enum hvd_op sum_ops[] = {HVD_SUM, HVD_PRODUCT, HVD_MIN, HVD_MAX};

enum {
    SUM_OPS = sizeof(sum_ops) / sizeof(sum_ops[0])
};

/* All of others in the one half of the device's memory, own behind them, to in the other.
 * Any address: what is aligned less than a vector goes by elements, or by bytes. */
static struct hvd_gpu_step plan_sum(enum hvd_dtype dtype, enum hvd_op op, bool is_aligned)
{
    const int64_t size = (int64_t)reference_bytes(dtype);
    struct hvd_gpu_step step = {.kind = HVD_GPU_SUM_UP,
                                .dtype = dtype,
                                .op = op,
                                .sources = 2 + (int)random_below(MOST_SOURCES - 1),
                                .count = 1 + (int64_t)random_below(MOST_SUM) / size};
    int64_t skew = is_aligned ? 0 : 1 + (int64_t)random_below(15);

    step.peer = (int)random_below((size_t)step.sources);
    step.stride = (step.count * size + 255) / 256 * 256 + skew;
    step.from = memory[0] + skew;
    step.own = memory[0] + skew + (step.sources - 1) * step.stride;
    step.to = random_below(3) == 0 ? (char *)(uintptr_t)step.own : memory[1] + skew;
    return step;
}

/* The host's sum of the same, which is aligned for its elements, and nothing else written. */
static bool try_sum(enum hvd_dtype dtype, enum hvd_op op, bool is_aligned)
{
    static _Alignas(16) char aligned[MOST_SOURCES][(MOST_SUM + 31) / 16 * 16],
        expected[MOST_SUM + 16];
    const struct hvd_gpu_step step = plan_sum(dtype, op, is_aligned);
    const struct hvd_reduction reduction = {.dtype = dtype, .op = op, .postscale = 1.0};
    size_t bytes = (size_t)step.count * reference_bytes(dtype), differs = 0;
    char *side = (char *)step.to == (const char *)step.own ? memory[0] : memory[1];
    size_t to = (size_t)((char *)step.to - side);
    const void *sources[MOST_SOURCES];

    memset(from_host, 0x11, sizeof(from_host));
    for (int i = 0; i < step.sources; i++) {
        int other = i < step.peer ? i : i - 1;
        const char *at =
            i == step.peer ? step.own : (const char *)step.from + other * step.stride;

        fill_elements(dtype, aligned[i], (size_t)step.count);
        memcpy(from_host + (at - memory[0]), aligned[i], bytes);
        sources[i] = aligned[i];
    }
    hvd_reduce(&reduction, sources, step.sources, (size_t)step.count, expected);
    memset(before, 0x22, sizeof(before));
    gpu_copy(memory[0], from_host, ARENA, stream);
    gpu_copy(memory[1], before, ARENA, stream);
    gpu_finish(stream);
    steps[0] = step;
    if (!run_steps(1)) {
        return false;
    }
    gpu_copy(after, side, ARENA, stream);
    gpu_finish(stream);
    while (differs < bytes && after[to + differs] == expected[differs]) {
        differs++;
    }
    memcpy((side == memory[0] ? from_host : before) + to, expected, bytes);
    if (differs < bytes) {
        tap_note("%s, op %d, %d sources, own %d: byte %zu of %zu differs",
                 reference_name(dtype), (int)op, step.sources, step.peer, differs, bytes);
    }
    return memcmp(after, side == memory[0] ? from_host : before, ARENA) == 0;
}

static void test_sums(enum hvd_dtype dtype)
{
    bool good = true;

    for (int i = 0; i < 5 * SUM_OPS && good; i++) {
        good = try_sum(dtype, sum_ops[i % SUM_OPS], i < 3 * SUM_OPS);
    }
    tap_ok(good, "%s: sums, products, least and greatest have the host's bits",
           reference_name(dtype));
}

static bool open_all(const char *path)
{
    struct hvd_gpu_opening opening = {.tracks = 1, .wake = ignore};
    void *handle = dlopen(path, RTLD_NOW);
    struct hvd_error err = {0};

    module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    if (module == NULL) {
        tap_note("%s", dlerror());
        return false;
    }
    if (!gpu_open()) {
        return false;
    }
    opening.device = gpu_number();
    if (module->open(&opening, &device, &err) != 0 ||
        module->event_create(device, &done, &err) != 0) {
        tap_note("%s", err.text);
        return false;
    }
    stream = gpu_stream();
    memory[0] = gpu_memory(ARENA);
    memory[1] = gpu_memory(ARENA);
    return true;
}

int main(int argc, char **argv)
{
    state = tap_seed((unsigned)time(NULL));
    if (!tap_ok(argc == 2 && open_all(argv[1]), "the module can be loaded")) {
        return tap_done();
    }
    if (module->no_kernels(device) != NULL) {
        tap_skip("the kernels are right", module->no_kernels(device));
        return tap_done();
    }
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        test_pair(pairs[i]);
    }
    test_copies();
    test_in_place();
    for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++) {
        test_sums(summed[i]);
    }
    module->stop(device, 5000);
    module->event_destroy(done);
    module->close(device);
    return tap_done();
}
