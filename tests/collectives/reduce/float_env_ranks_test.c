/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that results depend neither on the floating-point environment of the waiting
 * threads nor on the thread that makes progress, and that each thread keeps its
 * environment. Runs as each rank of a job. Rank 0 prints TAP; a rank that finds an error
 * also exits with 1. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/reduce/float_modes.h"
#include "tests/tap.h"

enum {
    COUNT = 300,
    BYTES = COUNT * 8,
    THREADS = 4,
    TURNS = 12, /* turns per thread */
};

static const double prescale = 0.3, postscale = 1.0 / 3;
static int rank, size, bad;
static uint32_t seed;

static void report(bool good, const char *what)
{
    bad += good ? 0 : 1;
    if (rank == 0) {
        tap_ok(good, "%s", what);
    }
}

/* An allreduce of one dtype and op. */
struct call {
    char name[64];
    enum hvd_dtype dtype;
    enum hvd_op op;
    char input[BYTES];
    char expected[BYTES]; /* the result in the usual mode */
    char output[BYTES];
};

/* Returns the bits of a number. Many are subnormal, or become subnormal when they are
 * scaled or multiplied. */
static uint64_t random_bits(enum hvd_dtype dtype, int64_t i)
{
    uint64_t low = value_random(seed, rank, 3 * i),
             high = value_random(seed, rank, 3 * i + 1);
    uint64_t kind = value_random(seed, rank, 3 * i + 2);
    static const int fractions[HVD_DTYPE_COUNT] = {
        [HVD_FLOAT16] = 10, [HVD_BFLOAT16] = 7, [HVD_FLOAT32] = 23, [HVD_FLOAT64] = 52};
    int fraction = fractions[dtype], bits = 8 * (int)hvd_dtype_bytes(dtype);
    uint64_t digits = (high << 32 | low) & ((UINT64_C(1) << fraction) - 1);
    uint64_t bias = (UINT64_C(1) << (bits - 2 - fraction)) - 1;
    uint64_t exponent = kind % 3 == 0   ? 0
                        : kind % 3 == 1 ? 1 + kind % 2
                                        : bias - kind % 4;

    return (kind >> 8 & 1) << (bits - 1) | exponent << fraction | digits;
}

static void fill(struct call *call)
{
    size_t bytes = hvd_dtype_bytes(call->dtype);

    for (int64_t i = 0; i < COUNT; i++) {
        uint64_t value = random_bits(call->dtype, i);

        memcpy(call->input + (size_t)i * bytes, &value, bytes);
    }
    snprintf(call->name, sizeof(call->name), "%s.%d", hvd_dtype_name(call->dtype),
             (int)call->op);
}

/* Waits for a request. If `drives` is false, the caller only polls, and the progress
 * thread makes progress. */
static int wait_for(struct hvd_request *request, bool drives)
{
    const struct timespec moment = {.tv_nsec = 100000};
    int status = drives ? hvd_wait(request, NULL) : HVD_INPROGRESS;

    while (status == HVD_INPROGRESS) {
        nanosleep(&moment, NULL);
        status = hvd_wait_for(request, 0, NULL);
    }
    return status;
}

/* Runs a call in a floating-point mode, in which the thread does no other arithmetic.
 * Returns true if the call succeeded and the mode is unchanged. */
static bool run_in(int mode, bool drives, struct call *call)
{
    const int64_t count = COUNT;
    struct hvd_tensor tensor =
        call_tensor(call->name, call->dtype, &count, 1, call->input, call->output);
    struct hvd_request *request = NULL;
    int status;
    bool is_kept;

    float_mode_begin(mode);
    status =
        hvd_allreduce_start(&tensor, 1, call->op, prescale, postscale, 0, &request, NULL);
    if (status == 0) {
        status = wait_for(request, drives);
    }
    is_kept = float_mode_is_kept(mode);
    hvd_request_free(request);
    return is_kept && status == 0;
}

static bool is_expected(const struct call *call)
{
    return memcmp(call->output, call->expected, COUNT * hvd_dtype_bytes(call->dtype)) ==
           0;
}

static bool adds_up_alike(struct call *call)
{
    size_t bytes = COUNT * hvd_dtype_bytes(call->dtype);
    int modes = float_mode_count(), wrong = 0;

    fill(call);
    wrong += !run_in(0, true, call);
    memcpy(call->expected, call->output, bytes);
    for (int turn = 0; turn < 2 * modes; turn++) {
        int mode = (turn / 2 + rank) % modes;
        bool drives = (turn + rank) % 2 == 0;
        bool is_kept = run_in(mode, drives, call);

        if (!is_kept || !is_expected(call)) {
            tap_note("rank %d, %s, %s: the mode is %s, the bits are %s", rank,
                     float_mode_name(mode), drives ? "waiting" : "asking",
                     is_kept ? "kept" : "lost", is_expected(call) ? "right" : "wrong");
            wrong++;
        }
    }
    return call_is_same(call->expected, bytes) && wrong == 0;
}

static void test_ops(void)
{
    static const enum hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                            HVD_FLOAT64};
    static const char *const names[HVD_OP_COUNT] = {
        [HVD_AVERAGE] = "average", [HVD_SUM] = "sum", [HVD_ADASUM] = "adasum",
        [HVD_MIN] = "min",         [HVD_MAX] = "max", [HVD_PRODUCT] = "product"};
    bool has_adasum = (size & (size - 1)) == 0;

    for (int i = 0; i < 4; i++) {
        for (int op = 0; op <= HVD_PRODUCT; op++) {
            struct call call = {.dtype = dtypes[i], .op = (enum hvd_op)op};
            char what[80];

            if (op != HVD_ADASUM || has_adasum) {
                snprintf(what, sizeof(what), "%s of %s: the same bits in each mode",
                         names[op], hvd_dtype_name(dtypes[i]));
                report(adds_up_alike(&call), what);
            }
        }
    }
}

/* Runs a call in several modes while other threads do so, too: any thread may make
 * progress for all. */
static void *add_up_in_turns(void *arg)
{
    struct call *call = arg;
    int thread = call->name[0] - '0';
    bool is_right = true;

    for (int turn = 0; turn < TURNS; turn++) {
        int mode = (turn + thread + rank) % float_mode_count();

        is_right = run_in(mode, (turn + thread) % 2 == 0, call) && is_right;
        is_right = is_expected(call) && is_right;
    }
    return is_right ? call : NULL;
}

static void test_threads(void)
{
    static struct call calls[THREADS];
    pthread_t threads[THREADS];
    int wrong = 0;

    for (int i = 0; i < THREADS; i++) {
        calls[i] = (struct call){.dtype = HVD_FLOAT32, .op = HVD_SUM};
        fill(&calls[i]);
        snprintf(calls[i].name, sizeof(calls[i].name), "%d", i);
        wrong += !run_in(0, true, &calls[i]);
        memcpy(calls[i].expected, calls[i].output, sizeof(calls[i].expected));
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, add_up_in_turns, &calls[i]) != 0) {
            exit(1);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        void *right;

        pthread_join(threads[i], &right);
        wrong += right == NULL;
    }
    report(wrong == 0, "threads in several modes at once get the same bits");
}

/* Calls hvd_init, which creates the progress thread, in a floating-point mode. */
static int init_in(int mode)
{
    struct hvd_error err = {0};
    int status;
    bool is_kept;

    float_mode_begin(mode);
    status = hvd_init(&err);
    is_kept = float_mode_is_kept(mode);
    if (status != 0) {
        tap_note("%s", err.text);
    }
    return status == 0 && is_kept ? 0 : 1;
}

static int shut_down_in(int mode)
{
    float_mode_begin(mode);
    hvd_shutdown();
    return float_mode_is_kept(mode) ? 0 : 1;
}

int main(void)
{
    const char *own = getenv("HOROVOD_RANK");
    int start_mode = own != NULL ? float_mode_count() - 1 - atoi(own) % 2 : 0;

    bad += init_in(start_mode);
    rank = hvd_rank();
    size = hvd_size();
    seed = call_seed();
    test_ops();
    test_threads();
    bad += shut_down_in(start_mode);
    if (rank == 0) {
        tap_ok(bad == 0, "hvd_init and hvd_shutdown keep the mode of their thread");
        return tap_done() != 0 || bad != 0;
    }
    return bad != 0;
}
