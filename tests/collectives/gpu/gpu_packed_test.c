/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of small tensors, which are packed, and large ones, which are not, more from
 * round to round, also when a rank has joined. Runs as each rank of a job of 2 or more on
 * the stand-in; rank 0 prints TAP, the others end with 1 when something is wrong. */

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    ROUNDS = 5, /* before a rank joins, and after that */
    TENSORS = 7,
    LARGE = 3, /* the number of that one */
    LARGE_COUNT = 300000, /* more than 1 MiB */
    SMALL_COUNT = 5000, /* less than 64 KiB: always packed */
    STEP_COUNT = 24000, /* of the others, more in each round: up to 1 MiB in all 10 */
    BYTES = LARGE_COUNT * (int)sizeof(float),
};

static int rank, size;
static void *stream;
static float *memory[TENSORS]; /* on the device */
static float values[LARGE_COUNT], got[LARGE_COUNT];
static char names[TENSORS][16];

static int64_t count_of(int tensor, int round)
{
    return tensor == LARGE ? LARGE_COUNT : (round + 1) * STEP_COUNT + tensor;
}

static float value_of(int of, int tensor, int64_t i)
{
    return (float)((of + 1) * (tensor + 1) + (int)(i % 5));
}

static void fill(int tensor, int round)
{
    for (int64_t i = 0; i < count_of(tensor, round); i++) {
        values[i] = value_of(rank, tensor, i);
    }
    gpu_copy(memory[tensor], values, BYTES, stream);
    gpu_finish(stream);
}

/* Half the sum over so many ranks, in the first elements. */
static bool is_right(int tensor, int64_t count, int round, int ranks)
{
    gpu_copy(got, memory[tensor], BYTES, stream);
    gpu_finish(stream);
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;

        for (int r = 0; r < ranks; r++) {
            sum += value_of(r, tensor, i);
        }
        if (got[i] != 0.5f * sum) {
            fprintf(stderr,
                    "# rank %d, round %d: element %d of tensor %d is %g, not %g\n", rank,
                    round, (int)i, tensor, (double)got[i], (double)(0.5f * sum));
            return false;
        }
    }
    return true;
}

static bool run_round(int round, int ranks)
{
    struct hvd_tensor tensors[TENSORS];
    int64_t shapes[TENSORS];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    for (int i = 0; i < TENSORS; i++) {
        shapes[i] = count_of(i, round);
        snprintf(names[i], sizeof(names[i]), "tensor %d", i);
        fill(i, round);
        tensors[i] = gpu_tensor(names[i], HVD_FLOAT32, &shapes[i], 1, memory[i],
                                memory[i], stream);
    }
    call_finish(
        hvd_allreduce_start(tensors, TENSORS, HVD_SUM, 0.25, 2, 0, &request, &err),
        &request, &err);
    good = hvd_wait_on(request, stream, -1, &err) == 0;
    hvd_request_free(request);
    for (int i = 0; i < TENSORS && good; i++) {
        good = is_right(i, count_of(i, round), round, ranks);
    }
    return good;
}

/* Packed tensors alone: NCCL only adds, or no switch would do it. */
static bool run_small(long *scaled_sums)
{
    const int64_t shape[] = {SMALL_COUNT};
    struct hvd_tensor tensors[LARGE];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    fake_gpu_fail_in("ncclRedOpCreatePreMulSum", 0);
    for (int i = 0; i < LARGE; i++) {
        snprintf(names[i], sizeof(names[i]), "small %d", i);
        fill(i, 0);
        tensors[i] =
            gpu_tensor(names[i], HVD_FLOAT32, shape, 1, memory[i], memory[i], stream);
    }
    status = hvd_allreduce_start(tensors, LARGE, HVD_AVERAGE, 1, size / 2.0, 0, &request,
                                 &err);
    if (status == 0) {
        status = hvd_wait(request, &err);
    }
    hvd_request_free(request);
    *scaled_sums = fake_gpu_fail_at(0);
    return status == 0 && is_right(LARGE - 1, SMALL_COUNT, 0, size);
}

int main(void)
{
    bool good = true;
    long scaled_sums = 1;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    for (int i = 0; i < TENSORS; i++) {
        memory[i] = gpu_memory(BYTES);
    }
    /* First: later there is a sum with a factor, which is kept. */
    report(run_small(&scaled_sums) && scaled_sums == 0,
           "packed tensors are averaged by kernels and plain sums");
    for (int round = 0; round < ROUNDS && good; round++) {
        good = run_round(round, size);
    }
    report(good, "groups of small and large tensors, more from round to round");
    for (int round = ROUNDS; rank != size - 1 && round < 2 * ROUNDS && good; round++) {
        good = run_round(round, size - 1);
    }
    call_join();
    report(good, "also when a rank has joined");
    hvd_shutdown();
    return report_done();
}
