/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks add up their numbers, counted from 1, by one allreduce. Each rank prints
 * RANK/SIZE=SUM. The sum shows that the ranks of a step have found exactly each other. */
#include <stdio.h>

#include "collectives/hvd.h"

static int add_up(int64_t number, int64_t *sum, struct hvd_error *err)
{
    const int64_t count = 1;
    const struct hvd_tensor tensor = {.name = "number",
                                      .input = &number,
                                      .output = sum,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_INT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1.0, 1.0, HVD_SET_GLOBAL, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

int main(void)
{
    struct hvd_error err;
    int64_t sum = 0;
    int status = hvd_init(&err);

    if (status == 0) {
        status = add_up(hvd_rank() + 1, &sum, &err);
    }
    if (status != 0) {
        fprintf(stderr, "sum_of_ranks: %s\n", err.text);
        return 1;
    }
    printf("%d/%d=%d\n", hvd_rank(), hvd_size(), (int)sum);
    hvd_shutdown();
    return 0;
}
