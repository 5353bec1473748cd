/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of tensors of several sizes, some of which are packed, some not: what comes out
 * is right, and NCCL is called as often as is wanted. gpu_packing_test CALLS|any. Runs as
 * each rank of a job on the stand-in; rank 0 prints TAP, the others end with 1 when
 * something is wrong. On a rank that has PACKING_FAILS=FUNCTION its first call in the
 * first round fails; one that has PACKING_FULL=1 has no device memory left; with
 * PACKING_JOINS=1, on all ranks, the last one has joined before. */
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    ROUNDS = 3, /* what is measured, if anything is, is part of the first */
    TENSORS = 5,
    MOST_COUNT = 500000,
};

/* 400 bytes, 40 kB, 100 kB, 800 kB, 2 MB */
static const int64_t counts[TENSORS] = {100, 10000, 25000, 200000, MOST_COUNT};

static int rank;
static int adding; /* ranks */
static void *stream;
static float *memory[TENSORS]; /* on the device */
static float values[MOST_COUNT];

static float value_of(int of, int round, int tensor, int64_t i)
{
    return (float)((of + 1) * (tensor + 1) + round + (int)(i % 7));
}

static void fill(int round, int tensor)
{
    for (int64_t i = 0; i < counts[tensor]; i++) {
        values[i] = value_of(rank, round, tensor, i);
    }
    gpu_copy(memory[tensor], values, (size_t)counts[tensor] * sizeof(float), stream);
    gpu_finish(stream);
}

static bool is_right(int round, int tensor)
{
    gpu_copy(values, memory[tensor], (size_t)counts[tensor] * sizeof(float), stream);
    gpu_finish(stream);
    for (int64_t i = 0; i < counts[tensor]; i++) {
        float sum = 0;

        for (int r = 0; r < adding; r++) {
            sum += value_of(r, round, tensor, i);
        }
        if (values[i] != sum) {
            fprintf(stderr,
                    "# rank %d, round %d: element %d of tensor %d is %g, not %g\n", rank,
                    round, (int)i, tensor, (double)values[i], (double)sum);
            return false;
        }
    }
    return true;
}

static bool run_round(int round)
{
    static char names[TENSORS][16];
    struct hvd_tensor tensors[TENSORS];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good;

    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof(names[i]), "tensor %d", i);
        fill(round, i);
        tensors[i] = gpu_tensor(names[i], HVD_FLOAT32, &counts[i], 1, memory[i],
                                memory[i], stream);
    }
    call_finish(hvd_allreduce_start(tensors, TENSORS, HVD_SUM, 1, 1, 0, &request, &err),
                &request, &err);
    good = hvd_wait_on(request, stream, -1, &err) == 0;
    hvd_request_free(request);
    for (int i = 0; i < TENSORS && good; i++) {
        good = is_right(round, i);
    }
    return good;
}

/* Runs all rounds; NCCL is to be called so often in all but the first one, 0: as often as
 * it is, but always the same. */
static bool run_rounds(long wanted, bool *is_wanted)
{
    const char *fails = getenv("PACKING_FAILS");
    long calls = 0;

    for (int round = 0; round < ROUNDS; round++) {
        if (round == 0 && fails != NULL) {
            fake_gpu_fail_in(fails, 1);
        } else {
            fake_gpu_fail_in("ncclAllReduce", 0);
        }
        if (!run_round(round)) {
            return false;
        }
        calls = fake_gpu_fail_in(NULL, 0);
        if (round > 0 && (calls < 1 || (wanted > 0 && calls != wanted))) {
            fprintf(stderr, "# rank %d, round %d: %ld calls of ncclAllReduce, not %ld\n",
                    rank, round, calls, wanted);
            *is_wanted = false;
        }
        wanted = round > 0 ? calls : wanted;
    }
    return true;
}

int main(int argc, char **argv)
{
    long wanted = argc > 1 && strcmp(argv[1], "any") != 0 ? atol(argv[1]) : 0;
    bool joins = getenv("PACKING_JOINS") != NULL;
    bool is_good = true, is_wanted = true;

    if (!gpu_open()) {
        return 1;
    }
    rank = call_init();
    adding = hvd_size() - (joins ? 1 : 0);
    stream = gpu_stream();
    for (int i = 0; i < TENSORS; i++) {
        memory[i] = gpu_memory((size_t)counts[i] * sizeof(float));
    }
    if (getenv("PACKING_FULL") != NULL) {
        fake_gpu_limit(1, 0);
    }
    if (rank < adding) {
        is_good = run_rounds(wanted, &is_wanted);
    }
    if (joins) {
        call_join();
    }
    hvd_shutdown();
    if (rank != 0) {
        return is_good && is_wanted ? 0 : 1;
    }
    tap_ok(is_good, "the sums of tensors small and large are right");
    tap_ok(is_wanted, "of each group NCCL adds up so many buffers: %s", argv[1]);
    return tap_done();
}
