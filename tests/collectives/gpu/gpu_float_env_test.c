/* SPDX-License-Identifier: Apache-2.0 */
/* The rounding mode of the thread that first submits a GPU tensor does not affect
 * results, and is not changed. On the stand-in; runs as each rank of a job. */
#include <string.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/reduce/float_modes.h"
#include "tests/collectives/report.h"

enum {
    COUNT = 1000,
};

static float values[COUNT], expected[COUNT];
static int rank, size;

/* Averages the tensor while the thread has this rounding mode. Returns whether hvd kept
 * the mode. Does no arithmetic itself in this mode. */
static bool average(char *memory, void *stream, int mode)
{
    const int64_t count = COUNT;
    struct hvd_tensor tensor =
        gpu_tensor("first", HVD_FLOAT32, &count, 1, memory, memory, stream);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool is_kept;
    int status;

    float_mode_begin(mode);
    status = hvd_allreduce_start(&tensor, 1, HVD_AVERAGE, 1, 1, HVD_SET_GLOBAL, &request,
                                 &err);
    if (status == 0) {
        status = hvd_wait_on(request, stream, -1, &err);
    }
    is_kept = float_mode_is_kept(mode);
    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    hvd_request_free(request);
    return is_kept;
}

/* Computes the expected result: each rank's value times 1/size in float, as hvd tells
 * NCCL, added up in order of rank. */
static void add_up(void)
{
    const float factor = (float)(1.0 / size);

    for (int i = 0; i < COUNT; i++) {
        float sum = 0;

        for (int of = 0; of < size; of++) {
            sum += factor * (float)(1 << 20);
        }
        values[i] = 1 << 20;
        expected[i] = sum;
    }
}

int main(void)
{
    char *memory;
    void *stream;
    bool is_kept;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    memory = gpu_memory(sizeof(values));
    add_up();
    gpu_copy(memory, values, sizeof(values), stream);
    gpu_finish(stream);
    /* rounding up, down, or toward zero */
    is_kept = average(memory, stream, 1 + rank % 3);
    gpu_copy(values, memory, sizeof(values), stream);
    gpu_finish(stream);
    report(is_kept, "the caller's rounding mode is kept");
    report(call_is_same(values, sizeof(values)), "all ranks have the same bits");
    report(memcmp(values, expected, sizeof(values)) == 0,
           "results are rounded to nearest");
    hvd_shutdown();
    return report_done();
}
