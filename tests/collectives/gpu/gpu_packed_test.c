/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces groups of small tensors, which are packed, and large ones, which are not. Sizes
 * grow from round to round, also after a rank has joined. Runs as each rank of a job of 2
 * or more on the stand-in. Rank 0 prints TAP; other ranks exit with 1 if something is
 * wrong. */

#include "tests/collectives/gpu/gpu_group.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    ROUNDS = 5, /* before a rank joins, and again after that */
    TENSORS = 7,
    SMALL_TENSORS = 3,
    LARGE = 3, /* index of the large tensor */
    LARGE_COUNT = 300000, /* more than 1 MiB */
    SMALL_COUNT = 5000, /* less than 64 KiB: always packed */
    /* the other tensors grow by this in each round, up to 1 MiB in round 10 */
    STEP_COUNT = 24000,
};

static int64_t count_of(int tensor, int round)
{
    return tensor == LARGE ? LARGE_COUNT : (round + 1) * STEP_COUNT + tensor;
}

/* Reduces the group to half the sum. */
static bool run_round(struct gpu_group *group, int round, int ranks)
{
    for (int i = 0; i < TENSORS; i++) {
        group->counts[i] = count_of(i, round);
    }
    return gpu_group_reduce(group, round, HVD_FLOAT32, HVD_SUM, 0.25, 2) == 0 &&
           gpu_group_is_sum(group, round, ranks, 0.5f);
}

/* Reduces only packed tensors. NCCL must add without a factor, because a switch can only
 * compute plain sums. */
static bool run_small(void *stream)
{
    static const int64_t counts[SMALL_TENSORS] = {SMALL_COUNT, SMALL_COUNT, SMALL_COUNT};
    struct gpu_group group = gpu_group_open("small", counts, SMALL_TENSORS, stream);
    double factor = hvd_size() / 2.0;
    bool good;

    fake_gpu_fail_in("ncclRedOpCreatePreMulSum", 0);
    good = gpu_group_reduce(&group, 0, HVD_FLOAT32, HVD_AVERAGE, 1, factor) == 0 &&
           fake_gpu_fail_at(0) == 0 && gpu_group_is_sum(&group, 0, hvd_size(), 0.5f);
    gpu_group_close(&group);
    return good;
}

int main(void)
{
    int64_t counts[TENSORS];
    struct gpu_group group;
    bool good = true;
    int rank, size;
    void *stream;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    for (int i = 0; i < TENSORS; i++) {
        counts[i] = LARGE_COUNT;
    }
    group = gpu_group_open("tensor", counts, TENSORS, stream);
    /* This must be the first test: NCCL's sum with a factor is created once and kept, so
     * later a missing call would prove nothing. */
    report(run_small(stream), "packed tensors are averaged by kernels and plain sums");
    for (int round = 0; round < ROUNDS && good; round++) {
        good = run_round(&group, round, size);
    }
    report(good, "groups of small and growing large tensors are right");
    for (int round = ROUNDS; rank != size - 1 && round < 2 * ROUNDS && good; round++) {
        good = run_round(&group, round, size - 1);
    }
    call_join();
    report(good, "groups are right when a rank has joined");
    hvd_shutdown();
    gpu_group_close(&group);
    return report_done();
}
