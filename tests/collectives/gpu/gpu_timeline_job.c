/* SPDX-License-Identifier: Apache-2.0 */
/* A job on GPUs whose timeline gpu_timeline_check.py checks afterwards.
 *   gpu_timeline_job steps          collectives of every kind; the host runs ahead of
 *                                   the device
 *   gpu_timeline_job dynamic FILE   one step without a timeline, one with the timeline
 *                                   FILE, one without */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_memory.h"

enum {
    STEPS = 5,
    ROWS = 64,
    BYTES = 1 << 16,
};

static int rank, size;
static void *stream;
static char *input, *output;

/* Makes the stream wait for the request and frees the request. The host does not wait. */
static void end(int started, struct hvd_request **request)
{
    struct hvd_error err = {0};
    int status = started != 0 ? started : hvd_wait_on(*request, stream, -1, &err);

    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    hvd_request_free(*request);
}

static struct hvd_tensor tensor(const char *name, enum hvd_dtype dtype,
                                const int64_t *rows)
{
    return gpu_tensor(name, dtype, rows, 1, input, output, stream);
}

static void run_step(void)
{
    static const int64_t eight = 8, rows = ROWS;
    const int64_t mine = rank + 1, all = size * 2;
    struct hvd_tensor pair[] = {tensor("fused/a", HVD_FLOAT32, &rows),
                                tensor("fused/b", HVD_FLOAT32, &rows)};
    struct hvd_tensor gathered = tensor("gathered", HVD_FLOAT64, &mine);
    struct hvd_tensor shared = tensor("shared", HVD_FLOAT64, &eight);
    struct hvd_tensor sent = tensor("sent", HVD_INT32, &all);
    struct hvd_tensor scattered = tensor("scattered", HVD_FLOAT64, &all);
    struct hvd_tensor summed = tensor("summed", HVD_FLOAT64, &all);
    struct hvd_tensor collected = tensor("collected", HVD_FLOAT64, &mine);
    struct hvd_tensor dealt = tensor("dealt", HVD_FLOAT64, &all);
    struct hvd_tensor staged = tensor("staged", HVD_INT16, &rows);
    struct hvd_request *request = NULL;

    pair[1].output = output + BYTES / 2;
    end(hvd_allreduce_start(pair, 2, HVD_SUM, 1, 1, 0, &request, NULL), &request);
    gathered.output = NULL;
    end(hvd_allgather_start(&gathered, 1, 0, &request, NULL), &request);
    end(hvd_broadcast_start(&shared, 0, 0, &request, NULL), &request);
    sent.output = NULL;
    end(hvd_alltoall_start(&sent, NULL, 0, 0, &request, NULL), &request);
    end(hvd_reducescatter_start(&scattered, 1, HVD_SUM, 1, 1, 0, &request, NULL),
        &request);
    end(hvd_reduce_start(&summed, HVD_SUM, 1, 1, 0, 0, &request, NULL), &request);
    end(hvd_gather_start(&collected, 0, 0, &request, NULL), &request);
    end(hvd_scatter_start(&dealt, 0, 0, &request, NULL), &request);
    end(hvd_allreduce_start(&staged, 1, HVD_SUM, 1, 1, 0, &request, NULL), &request);
}

static void reduce_one(const char *name)
{
    static const int64_t rows = ROWS;
    struct hvd_tensor one = tensor(name, HVD_FLOAT32, &rows);
    struct hvd_request *request = NULL;

    end(hvd_allreduce_start(&one, 1, HVD_SUM, 1, 1, 0, &request, NULL), &request);
}

static void run_dynamic(const char *path)
{
    struct hvd_error err = {0};

    reduce_one("before");
    call_barrier();
    if (hvd_timeline_start(path, 0, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
    call_barrier();
    reduce_one("meanwhile");
    hvd_timeline_stop(NULL);
    call_barrier();
    reduce_one("after");
}

int main(int argc, char **argv)
{
    if (argc < 2 || !gpu_open()) {
        return 1;
    }
    rank = call_init();
    size = hvd_size();
    stream = gpu_stream();
    input = gpu_memory(BYTES);
    output = gpu_memory(BYTES);
    if (strcmp(argv[1], "dynamic") == 0 && argc == 3) {
        run_dynamic(argv[2]);
    } else {
        for (int step = 0; step < STEPS; step++) {
            run_step();
        }
    }
    gpu_finish(stream);
    hvd_shutdown();
    return 0;
}
