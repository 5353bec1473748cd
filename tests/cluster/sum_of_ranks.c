/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks add up their numbers, counted from 1, by one allreduce. Each rank prints
 * RANK/SIZE=SUM. The sum shows that the ranks of a step have found exactly each other. */
#include <stdio.h>

#include "tests/collectives/calls.h"

int main(void)
{
    const int64_t number = call_init() + 1;
    int64_t sum = 0;
    const struct hvd_tensor tensor =
        call_tensor("number", HVD_INT64, NULL, 0, &number, &sum);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
    printf("%d/%d=%d\n", hvd_rank(), hvd_size(), (int)sum);
    hvd_shutdown();
    return 0;
}
