/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of a job before its first step: hvd_init, one allreduce,
 * hvd_shutdown. Rank 0 prints the milliseconds of the first two. */
#include <stdio.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"

static int step(struct hvd_error *err)
{
    float value = 1;
    struct hvd_tensor tensor = {.name = "first",
                                .input = &value,
                                .output = &value,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status == 0 && value != (float)hvd_size() ? HVD_ERR_MISMATCH : status;
}

int main(void)
{
    struct hvd_error err = {.text = "a wrong sum"};
    int64_t begin_ns = hvd_clock_ns(), ready_ns;

    if (hvd_init(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    ready_ns = hvd_clock_ns();
    if (step(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (hvd_rank() == 0) {
        printf("init %.1f first %.1f\n", (double)(ready_ns - begin_ns) / 1e6,
               (double)(hvd_clock_ns() - ready_ns) / 1e6);
    }
    return hvd_shutdown();
}
