/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which algorithm the measured times of the ranks choose, and the size classes. */
#include "collectives/gpu/gpu_trial_choice.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
};

static const int64_t chunk = 1 << 20;

static const enum hvd_gpu_allreduce all[] = {
    HVD_GPU_ALLREDUCE_FLAT, HVD_GPU_ALLREDUCE_HIERARCHICAL, HVD_GPU_ALLREDUCE_DIRECT};

/* Times of one rank for 1000 bytes. */
static struct hvd_gpu_trial times(int64_t flat, int64_t hierarchical, int64_t direct)
{
    return (struct hvd_gpu_trial){.ns = {[HVD_GPU_ALLREDUCE_FLAT] = flat,
                                         [HVD_GPU_ALLREDUCE_HIERARCHICAL] = hierarchical,
                                         [HVD_GPU_ALLREDUCE_DIRECT] = direct},
                                  .bytes = {[HVD_GPU_ALLREDUCE_FLAT] = 1000,
                                            [HVD_GPU_ALLREDUCE_HIERARCHICAL] = 1000,
                                            [HVD_GPU_ALLREDUCE_DIRECT] = 1000}};
}

static enum hvd_gpu_allreduce best_of(struct hvd_gpu_trial one)
{
    return hvd_gpu_trial_best(&one, 1, all, 3);
}

static void test_margin(void)
{
    struct hvd_gpu_trial told[RANKS] = {times(1000, 500, 2000), times(1000, 980, 2000)};

    tap_ok(best_of(times(1000, 1000, 1000)) == HVD_GPU_ALLREDUCE_FLAT,
           "equally fast: flat");
    tap_ok(best_of(times(1000, 920, 910)) == HVD_GPU_ALLREDUCE_FLAT,
           "less than 10 %% faster: flat");
    tap_ok(best_of(times(1000, 900, 2000)) == HVD_GPU_ALLREDUCE_HIERARCHICAL,
           "more than 10 %% faster: the faster one");
    tap_ok(best_of(times(1000, 900, 850)) == HVD_GPU_ALLREDUCE_HIERARCHICAL &&
               best_of(times(1000, 900, 800)) == HVD_GPU_ALLREDUCE_DIRECT,
           "each candidate must be 10 %% faster than the best one before it");
    tap_ok(hvd_gpu_trial_best(told, RANKS, all, 3) == HVD_GPU_ALLREDUCE_FLAT,
           "the slowest rank counts");
    tap_ok(best_of(times(0, 0, 0)) == HVD_GPU_ALLREDUCE_FLAT,
           "a clock that stands still chooses flat");
}

static void test_classes(void)
{
    tap_ok(hvd_gpu_size_class(0, chunk) == -1 &&
               hvd_gpu_size_class(chunk - 1, chunk) == -1,
           "less than a chunk is in no class");
    tap_ok(hvd_gpu_size_class(chunk, chunk) == 0 &&
               hvd_gpu_size_class(4 * chunk - 1, chunk) == 0 &&
               hvd_gpu_size_class(4 * chunk, chunk) == 1 &&
               hvd_gpu_size_class(16 * chunk, chunk) == 2 &&
               hvd_gpu_size_class(INT64_MAX, chunk) == 2,
           "the classes begin at 1, 4 and 16 chunks");
    tap_ok(hvd_gpu_size_class_begin(0, chunk) == chunk &&
               hvd_gpu_size_class_begin(2, chunk) == 16 * chunk,
           "the beginning of a class is known");
}

int main(void)
{
    test_margin();
    test_classes();
    return tap_done();
}
