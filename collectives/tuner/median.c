/* SPDX-License-Identifier: Apache-2.0 */
/* The middle of some values. */
#include "collectives/tuner/median.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double hvd_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(values[0]), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
