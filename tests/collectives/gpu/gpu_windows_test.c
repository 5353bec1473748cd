/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces groups of small tensors, then larger ones, with or without windows of NCCL: the
 * sums are right, windows are registered the expected number of times, and all of them
 * have been deregistered and freed after shutdown. The stand-in checks their order, size,
 * place and lifetime. Runs as each rank of a job. Rank 0 prints TAP; other ranks exit
 * with 1 if something is wrong.
 *
 *   gpu_windows_test REGISTERED LOST   how often each rank registers a window ("any": not
 *                                      checked), and how many of these end by an abort
 *
 *   WINDOWS_FAIL=N   on this rank, the N-th registration fails */
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_group.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    ROUNDS = 3, /* of each group */
    TENSORS = GPU_GROUP_MOST,
};

/* All are packed: HVD_GPU_PACK_BELOW is large. The second group needs more than the
 * smallest window. */
static const int64_t small[TENSORS] = {100, 10000, 25000, 1, 1, 1, 1, 1};
static const int64_t large[TENSORS] = {550000, 550000, 550000, 550000,
                                       550000, 550000, 550000, 550000};

static int rank;

static bool reduce_rounds(const char *name, const int64_t *counts)
{
    struct gpu_group group = gpu_group_open(name, counts, TENSORS, gpu_stream());
    bool is_good = true;

    for (int round = 0; round < ROUNDS && is_good; round++) {
        is_good = gpu_group_reduce(&group, round, HVD_FLOAT32, HVD_SUM, 1, 1) == 0 &&
                  gpu_group_is_sum(&group, round, hvd_size(), 1);
    }
    gpu_group_close(&group);
    return is_good;
}

static bool is_called(const char *function, long wanted)
{
    long calls = fake_gpu_calls(function);

    if (calls != wanted) {
        fprintf(stderr, "# rank %d: %ld calls of %s, not %ld\n", rank, calls, function,
                wanted);
    }
    return calls == wanted;
}

int main(int argc, char **argv)
{
    long registered = argc > 1 ? atol(argv[1]) : 0, lost = argc > 2 ? atol(argv[2]) : 0;
    bool is_any = argc > 1 && strcmp(argv[1], "any") == 0;
    const char *fails = getenv("WINDOWS_FAIL");
    bool is_good, is_registered, has_ended, is_freed;

    if (!gpu_open()) {
        return 1;
    }
    rank = call_init();
    if (fails != NULL) {
        fake_gpu_fail_in("ncclCommWindowRegister", atol(fails));
    }
    is_good = reduce_rounds("small", small) && reduce_rounds("large", large) &&
              reduce_rounds("again", small);
    hvd_shutdown();
    is_registered = is_any || is_called("ncclCommWindowRegister", registered);
    has_ended = is_any || is_called("ncclCommWindowDeregister", registered - lost);
    is_freed = is_called("ncclMemFree", fake_gpu_calls("ncclMemAlloc"));
    if (rank != 0) {
        return is_good && is_registered && has_ended && is_freed ? 0 : 1;
    }
    tap_ok(is_good, "sums of packed tensors are right");
    tap_ok(is_registered, "windows are registered once for each size: %ld", registered);
    tap_ok(has_ended, "windows are deregistered before their communicator ends");
    tap_ok(is_freed, "the memory of windows is freed");
    return tap_done();
}
