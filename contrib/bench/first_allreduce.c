/* SPDX-License-Identifier: Apache-2.0 */
/* init, one allreduce, shutdown: what a job pays before its first step. */
#include <stdio.h>

#include "collectives/hvd.h"

int main(void)
{
    float value = 1;
    struct hvd_tensor tensor = {.name = "first",
                                .input = &value,
                                .output = &value,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    struct hvd_error err;

    if (hvd_init(&err) != 0 ||
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0 ||
        hvd_wait(request, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    hvd_request_free(request);
    return value == (float)hvd_size() ? hvd_shutdown() : 1;
}
