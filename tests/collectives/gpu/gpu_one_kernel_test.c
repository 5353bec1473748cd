/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces small batches by one kernel (HVD_GPU_ONE_KERNEL): the results have the bits of
 * an allreduce of host tensors, also when many batches follow each other and some of them
 * are too large for the kernel. Runs as each rank of a job on the stand-in, in which a
 * kernel that stores into memory that another rank has freed ends the process. Rank 0
 * prints TAP; other ranks exit with 1 if something is wrong.
 *
 *   gpu_one_kernel_test PATH   kernel: small batches must not use NCCL; nccl: they must
 *
 *   ONE_KERNEL_FAILS=FUNCTION   on this rank, all calls of this function of CUDA fail */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    TENSORS = 5,
    MOST = 3000, /* elements of a tensor */
    ROUNDS = 6,
    ARENA = TENSORS * (MOST + 8) * (int)sizeof(double),
    QUEUED = 60,
    SMALL = 5000, /* elements; several blocks */
    MOST_RANKS = 16,
    LARGE = 40000, /* more than the tests' HVD_GPU_ONE_KERNEL */
};

static const struct reduction {
    const char *name;
    enum hvd_dtype dtype;
    int wire;
    enum hvd_op op;
    double prescale;
    double postscale;
} reductions[] = {
    {"a sum of float32", HVD_FLOAT32, 0, HVD_SUM, 1, 1},
    {"an average of float32", HVD_FLOAT32, 0, HVD_AVERAGE, 1, 1},
    {"a scaled average of float32", HVD_FLOAT32, 0, HVD_AVERAGE, 0.3, 1.7},
    {"a sum of float64", HVD_FLOAT64, 0, HVD_SUM, 1, 1},
    {"a scaled average of float64", HVD_FLOAT64, 0, HVD_AVERAGE, 0.3, 1.7},
    {"a sum of float16", HVD_FLOAT16, 0, HVD_SUM, 1, 1},
    {"an average of float16", HVD_FLOAT16, 0, HVD_AVERAGE, 1, 1},
    {"a scaled sum of float16", HVD_FLOAT16, 0, HVD_SUM, 0.3, 1.7},
    {"a sum of bfloat16", HVD_BFLOAT16, 0, HVD_SUM, 1, 1},
    {"a scaled average of bfloat16", HVD_BFLOAT16, 0, HVD_AVERAGE, 0.3, 1.7},
    {"a sum as float16", HVD_FLOAT32, HVD_FLOAT16, HVD_SUM, 1, 1},
    {"a scaled average as float16", HVD_FLOAT32, HVD_FLOAT16, HVD_AVERAGE, 0.3, 1.7},
    {"an average as bfloat16", HVD_FLOAT32, HVD_BFLOAT16, HVD_AVERAGE, 1, 1},
    {"a scaled sum as bfloat16", HVD_FLOAT32, HVD_BFLOAT16, HVD_SUM, 0.3, 1.7},
};

enum {
    REDUCTIONS = sizeof(reductions) / sizeof(reductions[0]),
};

static int rank, size;
static bool by_kernel; /* small batches are expected not to use NCCL */
static void *stream;
static char *inputs, *outputs; /* on the device */
static _Alignas(16) char values[ARENA], expected[ARENA], got[ARENA];
static uint32_t shared_random, own_random; /* the same on all ranks; of this rank */
static long opened; /* calls that had opened memory of other ranks before the test */

/* --- bits --- */

/* Most are near 1, so that the order of additions matters; some have any bits: infinite,
 * NaN, very large or small. */
static void fill(enum hvd_dtype dtype)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    for (size_t at = 0; at + bytes <= ARENA; at += bytes) {
        uint64_t bits = (uint64_t)call_random(&own_random) << 40 ^
                        (uint64_t)call_random(&own_random) << 20 ^
                        call_random(&own_random);
        bool is_any = call_random(&own_random) % 64 == 0;

        if (!is_any && dtype == HVD_FLOAT32) {
            bits = (bits & 0x81ffffff) | 0x3e000000;
        } else if (!is_any && dtype == HVD_FLOAT64) {
            bits = (bits & 0x801fffffffffffff) | 0x3fe0000000000000;
        } else if (!is_any && dtype == HVD_FLOAT16) {
            bits = (bits & 0x8fff) | 0x3000;
        } else if (!is_any) {
            bits = (bits & 0x81ff) | 0x3e00;
        }
        memcpy(values + at, &bits, bytes);
    }
}

/* Places tensors of random sizes in the arena, at any multiple of their elements. */
static void place(const struct reduction *reduction, int64_t *counts, size_t *offsets)
{
    size_t at = 0, bytes = hvd_dtype_bytes(reduction->dtype);

    for (int i = 0; i < TENSORS; i++) {
        uint32_t dice = call_random(&shared_random) % 8;

        at += dice < 4 ? call_random(&shared_random) % 8 : 0;
        counts[i] = dice == 0   ? 0
                    : dice == 1 ? 1
                                : 1 + call_random(&shared_random) % MOST;
        offsets[i] = at * bytes;
        at += (size_t)counts[i];
    }
}

static int start_device(const struct reduction *reduction, const int64_t *counts,
                        const size_t *offsets, bool is_in_place,
                        struct hvd_request **request, struct hvd_error *err)
{
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e"};
    struct hvd_tensor tensors[TENSORS];
    char *to = is_in_place ? inputs : outputs;

    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = gpu_tensor(names[i], reduction->dtype, &counts[i], 1,
                                inputs + offsets[i], to + offsets[i], stream);
        tensors[i].wire = reduction->wire;
    }
    return hvd_allreduce_start(tensors, TENSORS, reduction->op, reduction->prescale,
                               reduction->postscale, HVD_SET_GLOBAL, request, err);
}

static void reduce_on_host(const struct reduction *reduction, const int64_t *counts,
                           const size_t *offsets)
{
    static const char *const names[TENSORS] = {"host a", "host b", "host c", "host d",
                                               "host e"};
    struct hvd_tensor tensors[TENSORS];

    memcpy(expected, values, sizeof(expected));
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = call_tensor(names[i], reduction->dtype, &counts[i], 1,
                                 expected + offsets[i], expected + offsets[i]);
        tensors[i].wire = reduction->wire;
    }
    call_allreduce(tensors, TENSORS, reduction->op, reduction->prescale,
                   reduction->postscale, HVD_SET_GLOBAL);
}

static bool has_bits_of_host(const struct reduction *reduction, int round)
{
    int64_t counts[TENSORS];
    size_t offsets[TENSORS];
    bool is_in_place = round % 2 == 0, is_same = true;
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    place(reduction, counts, offsets);
    fill(reduction->dtype);
    gpu_copy(inputs, values, ARENA, stream);
    call_finish(start_device(reduction, counts, offsets, is_in_place, &request, &err),
                &request, &err);
    hvd_request_free(request);
    reduce_on_host(reduction, counts, offsets);
    gpu_copy(got, is_in_place ? inputs : outputs, ARENA, stream);
    gpu_finish(stream);
    for (int i = 0; i < TENSORS && is_same; i++) {
        is_same = memcmp(got + offsets[i], expected + offsets[i],
                         (size_t)counts[i] * hvd_dtype_bytes(reduction->dtype)) == 0;
        if (!is_same && by_kernel) {
            fprintf(stderr, "# rank %d, %s, round %d: tensor %d differs\n", rank,
                    reduction->name, round, i);
        }
    }
    return is_same;
}

/* --- many batches --- */

static int64_t count_of(int i)
{
    return i % 7 == 3 ? LARGE : SMALL + i;
}

static float value_of(int of, int i, int64_t at)
{
    return (float)((of + 1) * (i + 1) + (int)(at % 5));
}

static bool is_sum(int i, const float *tensor)
{
    static float results[LARGE];

    gpu_copy(results, tensor, (size_t)count_of(i) * sizeof(float), stream);
    gpu_finish(stream);
    for (int64_t at = 0; at < count_of(i); at++) {
        float sum = 0;

        for (int of = 0; of < size; of++) {
            sum += value_of(of, i, at);
        }
        if (results[at] != sum) {
            fprintf(stderr, "# rank %d: element %d of batch %d is %g, not %g\n", rank,
                    (int)at, i, (double)results[at], (double)sum);
            return false;
        }
    }
    return true;
}

/* Batches with different factors are not combined. */
static double factor_of(int i)
{
    return 1.0 / (double)(INT64_C(1) << i);
}

/* Starts all of them before it waits for the first. */
static bool run_queue(void)
{
    static float *tensors[QUEUED], filled[LARGE];
    static char names[QUEUED][16];
    struct hvd_request *requests[QUEUED];
    struct hvd_error err = {0};
    bool is_good = true;

    for (int i = 0; i < QUEUED; i++) {
        if (tensors[i] == NULL) {
            tensors[i] = gpu_memory(LARGE * sizeof(float));
        }
        for (int64_t at = 0; at < count_of(i); at++) {
            filled[at] = value_of(rank, i, at);
        }
        gpu_copy(tensors[i], filled, (size_t)count_of(i) * sizeof(float), stream);
        gpu_finish(stream);
    }
    for (int i = 0; i < QUEUED; i++) {
        int64_t count = count_of(i);
        struct hvd_tensor tensor;

        snprintf(names[i], sizeof(names[i]), "queued %d", i);
        tensor =
            gpu_tensor(names[i], HVD_FLOAT32, &count, 1, tensors[i], tensors[i], stream);
        if (hvd_allreduce_start(&tensor, 1, HVD_SUM, factor_of(i), 1 / factor_of(i),
                                HVD_SET_GLOBAL, &requests[i], &err) != 0) {
            fprintf(stderr, "# rank %d: %s\n", rank, err.text);
            exit(1);
        }
    }
    for (int i = 0; i < QUEUED; i++) {
        if (hvd_wait_on(requests[i], stream, -1, &err) != 0) {
            fprintf(stderr, "# rank %d: %s\n", rank, err.text);
            exit(1);
        }
        is_good = is_good && is_sum(i, tensors[i]);
        hvd_request_free(requests[i]);
    }
    return is_good;
}

/* --- the first batch --- */

static atomic_bool is_stuck;

/* Gives up after 120 s, for a thread that waits for it although it must not. */
static void be_stuck(void *argument)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    (void)argument;
    for (int left_ms = 120000; atomic_load(&is_stuck) && left_ms > 0; left_ms--) {
        nanosleep(&moment, NULL);
    }
    atomic_store(&is_stuck, false);
}

/* Adds up host tensors of a process set until all its ranks open inboxes. Returns false
 * if the other work has given up before. */
static bool adds_while_opening(int set, int count)
{
    int32_t opening = 0;

    while (opening < count && opening >= 0) {
        struct hvd_tensor tensor =
            call_tensor("opening", HVD_INT32, NULL, 0, &opening, &opening);

        opening = !atomic_load(&is_stuck)                         ? -MOST_RANKS
                  : fake_gpu_calls("cuIpcOpenMemHandle") > opened ? 1
                                                                  : 0;
        call_allreduce(&tensor, 1, HVD_SUM, 1, 1, set);
    }
    return opening == count && atomic_load(&is_stuck);
}

/* The GPUs of all ranks but the last are busy with other work, which CUDA waits for when
 * it opens memory. */
static void test_first_batch(void)
{
    static const int64_t shape[] = {SMALL};
    struct hvd_tensor tensor =
        gpu_tensor("first", HVD_FLOAT32, shape, 1, inputs, inputs, stream);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    const bool is_busy = rank < size - 1;
    bool is_good = true;
    int ranks[MOST_RANKS], set;

    for (int i = 0; i < size; i++) {
        ranks[i] = i;
    }
    set = call_set_add(ranks, size - 1);
    gpu_copy(inputs, values, SMALL * sizeof(float), stream);
    gpu_finish(stream);
    opened = fake_gpu_calls("cuIpcOpenMemHandle");
    atomic_store(&is_stuck, is_busy);
    fake_gpu_enqueue(gpu_stream(), be_stuck, NULL);
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, &request, &err) !=
        0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    if (is_busy) {
        is_good = adds_while_opening(set, size - 1);
    }
    atomic_store(&is_stuck, false);
    call_finish(0, &request, &err);
    hvd_request_free(request);
    call_set_remove(set);
    report(is_good, "host tensors are added while the inboxes are opened");
}

/* --- --- */

static void init(void)
{
    const char *fails = getenv("ONE_KERNEL_FAILS");

    setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1", 1);
    call_init();
    if (fails != NULL) {
        fake_gpu_fail_in(fails, -1);
    }
}

static void test_bits(void)
{
    long launches;

    has_bits_of_host(&reductions[0], 0); /* connects */
    launches = fake_gpu_calls(FAKE_NCCL_LAUNCH);
    for (int i = 0; i < REDUCTIONS && by_kernel; i++) {
        bool is_same = true;

        for (int round = 0; round < ROUNDS && is_same; round++) {
            is_same = has_bits_of_host(&reductions[i], round);
        }
        report(is_same, "%s has the bits of the host", reductions[i].name);
    }
    if (!by_kernel) {
        has_bits_of_host(&reductions[3], 0);
    }
    report((fake_gpu_calls(FAKE_NCCL_LAUNCH) == launches) == by_kernel,
           by_kernel ? "without NCCL" : "small batches use NCCL");
}

int main(int argc, char **argv)
{
    struct fake_live before, after;
    bool is_good;

    by_kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
    if (!gpu_open()) {
        return 1;
    }
    stream = gpu_stream();
    inputs = gpu_memory(ARENA);
    outputs = gpu_memory(ARENA);
    rank = report_init();
    hvd_shutdown();
    fake_gpu_live(&before);
    init();
    size = hvd_size();
    shared_random = call_seed();
    own_random = shared_random + (uint32_t)rank;
    if (by_kernel && size > 2) {
        test_first_batch();
    }
    test_bits();
    is_good = run_queue();
    report(is_good, "batches of both kinds follow each other");
    hvd_shutdown();
    fake_gpu_fail_in(NULL, 0);
    fake_gpu_live(&after);
    is_good =
        after.peer_memory == 0 && after.device_memory <= before.device_memory + QUEUED;
    if (!is_good) {
        fprintf(stderr, "# rank %d: %d pieces of memory, not %d, and %d of others\n",
                rank, after.device_memory, before.device_memory + QUEUED,
                after.peer_memory);
    }
    report_alone(is_good, "shutdown frees all memory, and closes that of other ranks");
    init();
    is_good = has_bits_of_host(&reductions[1], 0) || !by_kernel;
    is_good &= run_queue();
    report(is_good, "the next job of the processes works");
    hvd_shutdown();
    return report_done();
}
