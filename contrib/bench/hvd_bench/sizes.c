/* SPDX-License-Identifier: Apache-2.0 */
/* Parses sizes. */
#include "contrib/bench/hvd_bench/sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* No machine has more memory, and sums of sizes stay far below the limit of int64_t. */
#define MOST_BYTES ((int64_t)1 << 40)

static const char units[] = "KMG";

/* Returns the shift of a suffix; -1 if it is unknown. */
static int shift_of(const char *suffix)
{
    const char *unit;

    if (suffix[0] == '\0') {
        return 0;
    }
    unit = strchr(units, toupper((unsigned char)suffix[0]));
    if (unit == NULL || (suffix[1] != '\0' && strcasecmp(suffix + 1, "B") != 0 &&
                         strcasecmp(suffix + 1, "iB") != 0)) {
        return -1;
    }
    return 10 * (int)(unit - units + 1);
}

int bench_size_parse(const char *text, int64_t *bytes, struct hvd_error *err)
{
    char *end;
    long long number;
    int shift;

    errno = 0;
    number = strtoll(text, &end, 10);
    shift = shift_of(end);
    if (end == text || shift < 0 || number <= 0 || errno != 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "\"%.100s\" is not a size: write bytes, as 8, 64K, 1M or 2G",
                        text);
    }
    if (number > MOST_BYTES >> shift) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "\"%.100s\" is too large, expected 1024G at most", text);
    }
    *bytes = (int64_t)number << shift;
    return 0;
}

static int add_size(struct bench_sizes *sizes, int64_t bytes, struct hvd_error *err)
{
    if (sizes->count == BENCH_MOST_SIZES) {
        return hvd_fail(err, HVD_ERR_ARG, "more than %d sizes", BENCH_MOST_SIZES);
    }
    sizes->bytes[sizes->count++] = bytes;
    return 0;
}

static int add_range(char *least_text, struct bench_sizes *sizes, struct hvd_error *err)
{
    char *most_text = strchr(least_text, ':'), *factor_text, *end;
    int64_t least, most, factor = 2;
    int status;

    *most_text++ = '\0';
    factor_text = strchr(most_text, ':');
    if (factor_text != NULL) {
        *factor_text++ = '\0';
        factor = strtol(factor_text, &end, 10);
        if (factor < 2 || factor > MOST_BYTES || *end != '\0') {
            return hvd_fail(err, HVD_ERR_ARG,
                            "the factor of a range of sizes is a whole number above 1, "
                            "not \"%.100s\"",
                            factor_text);
        }
    }
    status = bench_size_parse(least_text, &least, err);
    if (status == 0) {
        status = bench_size_parse(most_text, &most, err);
    }
    if (status == 0 && most < least) {
        return hvd_fail(err, HVD_ERR_ARG, "the range of sizes %.50s:%.50s is empty",
                        least_text, most_text);
    }
    while (status == 0) {
        status = add_size(sizes, least, err);
        if (least > most / factor) {
            break;
        }
        least *= factor;
    }
    return status;
}

int bench_sizes_parse(const char *text, struct bench_sizes *sizes, struct hvd_error *err)
{
    char copy[4096], *rest = NULL;
    struct bench_sizes found = {0};
    int status = 0;

    if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy)) {
        return hvd_fail(err, HVD_ERR_ARG, "the list of sizes is too long");
    }
    for (char *item = strtok_r(copy, ",", &rest); item != NULL && status == 0;
         item = strtok_r(NULL, ",", &rest)) {
        int64_t bytes;

        if (strchr(item, ':') != NULL) {
            status = add_range(item, &found, err);
        } else {
            status = bench_size_parse(item, &bytes, err);
            status = status < 0 ? status : add_size(&found, bytes, err);
        }
    }
    if (status == 0 && found.count == 0) {
        return hvd_fail(err, HVD_ERR_ARG, "expected sizes, as 8,64K,1M, found \"%.100s\"",
                        text);
    }
    if (status == 0) {
        *sizes = found;
    }
    return status;
}
