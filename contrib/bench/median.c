/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a median by sorting. */
#include "contrib/bench/median.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(values[0]), compare_doubles);
    return values[count / 2];
}
