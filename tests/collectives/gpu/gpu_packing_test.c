/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces groups of tensors of several sizes, some packed and some not: results are
 * right, and NCCL is called the expected number of times. gpu_packing_test CALLS|any.
 * Runs as each rank of a job on the stand-in. Rank 0 prints TAP; other ranks exit with 1
 * if something is wrong.
 *
 *   PACKING_FAILS=FUNCTION   on this rank, the function's first call in round 0 fails
 *   PACKING_FULL=1           this rank has no device memory left
 *   PACKING_JOINS=1          on all ranks: the last rank joins before round 0 */
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_group.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    ROUNDS = 3, /* if hvd measures whether to pack, it does so in the first round */
    TENSORS = 5,
};

/* 400 bytes, 40 kB, 100 kB, 800 kB, 2 MB */
static const int64_t counts[TENSORS] = {100, 10000, 25000, 200000, 500000};

static int rank;
static int adding; /* number of ranks that reduce */
static struct gpu_group group;

static bool run_round(int round)
{
    return gpu_group_reduce(&group, round, HVD_FLOAT32, HVD_SUM, 1, 1) == 0 &&
           gpu_group_is_sum(&group, round, adding, 1);
}

/* Runs all rounds. In each round but the first, NCCL must be called `wanted` times. If
 * that is 0, any number is right, but it must be the same in each round. */
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
    group = gpu_group_open("tensor", counts, TENSORS, gpu_stream());
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
    gpu_group_close(&group);
    if (rank != 0) {
        return is_good && is_wanted ? 0 : 1;
    }
    tap_ok(is_good, "sums of small and large tensors are right");
    tap_ok(is_wanted, "NCCL reduces this many buffers for each group: %s", argv[1]);
    return tap_done();
}
