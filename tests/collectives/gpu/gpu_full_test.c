/* SPDX-License-Identifier: Apache-2.0 */
/* On a rank whose device memory is full, packed tensors, results that the library
 * allocates and batches through the host are right, and the job continues. Runs as each
 * rank of a job on the stand-in. Rank 0 prints TAP; other ranks exit with 1 if something
 * is wrong. */
#include "tests/collectives/gpu/gpu_group.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    COUNT = 20000,
    PAIR = 2,
    MOST_RANKS = 16,
    BYTES = COUNT * (int)sizeof(float),
};

static int rank, size;
static void *stream;
static struct gpu_group pair;
static float *gathered; /* on the device */
static float values[COUNT * MOST_RANKS];

static bool adds(enum hvd_dtype dtype)
{
    return gpu_group_reduce(&pair, 0, dtype, HVD_SUM, 1, 1) == 0 &&
           (dtype != HVD_FLOAT32 || gpu_group_is_sum(&pair, 0, size, 1));
}

static bool gathers(void)
{
    const int64_t shape[] = {COUNT};
    struct hvd_tensor tensor =
        gpu_tensor("gathered", HVD_FLOAT32, shape, 1, pair.memory[0], NULL, stream);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t rows = 0;
    bool good;

    gpu_group_fill(&pair, 0);
    call_finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err);
    good = hvd_wait_on(request, stream, -1, &err) == 0 &&
           hvd_request_rows(request, 0, &rows) == 0 && rows == (int64_t)size * COUNT &&
           hvd_request_copy(request, 0, gathered, stream, &err) == 0;
    hvd_request_free(request);
    if (good) {
        gpu_copy(values, gathered, (size_t)size * BYTES, stream);
        gpu_finish(stream);
    }
    for (int64_t i = 0; good && i < (int64_t)size * COUNT; i++) {
        good = values[i] == gpu_group_value((int)(i / COUNT), 0, 0, i % COUNT);
    }
    return good;
}

static int device_memories(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.device_memory;
}

/* Whether only the rank whose device was full learns that memory is short, and only
 * once. */
static bool is_told(bool was_full)
{
    return hvd_gpu_memory_is_short() == (was_full ? 1 : 0) &&
           hvd_gpu_memory_is_short() == 0;
}

/* Packed tensors stay in host memory until hvd_gpu_memory_freed is called. On several
 * nodes the memory for packed tensors is not kept: each batch allocates it anew. */
static bool returns_to_the_device(bool was_full)
{
    bool is_kept = hvd_cross_size() == 1;
    int before = device_memories();
    bool good = adds(HVD_FLOAT32) && (!is_kept || device_memories() == before);

    hvd_gpu_memory_freed();
    good = adds(HVD_FLOAT32) && good;
    return good && (!is_kept || device_memories() == before + (was_full ? 1 : 0));
}

int main(void)
{
    static const int64_t counts[PAIR] = {COUNT, COUNT};

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    pair = gpu_group_open("one of two", counts, PAIR, stream);
    gathered = gpu_memory((size_t)size * BYTES);
    if (rank == size - 1) {
        fake_gpu_limit(1, 0);
    }
    report(adds(HVD_FLOAT32), "packed tensors are reduced although a device is full");
    report(gathers(), "results are gathered although a device is full");
    report(adds(HVD_INT16), "tensors go through the host although a device is full");
    report(is_told(rank == size - 1), "the full rank learns that memory is short");
    fake_gpu_limit(0, 0);
    report(returns_to_the_device(rank == size - 1),
           "packed tensors return to the device when memory was freed");
    report(adds(HVD_FLOAT32) && gathers(),
           "the job continues when there is memory again");
    hvd_shutdown();
    gpu_group_close(&pair);
    return report_done();
}
