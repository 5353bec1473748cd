/* SPDX-License-Identifier: Apache-2.0 */
/* Converts sets of cpus to and from text in the notation of taskset. */
#include "gpu_binding/cpulist.h"

#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/error.h"

struct range {
    int first;
    int last;
    int stride;
};

/* Reads digits, and moves *at past them. strtol would also accept blanks and signs. */
static bool read_number(const char **at, int *number)
{
    int value = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value >= HVD_CPUSET_SIZE) {
            return false;
        }
    }
    if (p == *at) {
        return false;
    }
    *at = p;
    *number = value;
    return true;
}

static bool read_range(const char **at, struct range *range)
{
    if (!read_number(at, &range->first)) {
        return false;
    }
    range->last = range->first;
    range->stride = 1;
    if (**at != '-') {
        return true;
    }
    (*at)++;
    if (!read_number(at, &range->last) || range->last < range->first) {
        return false;
    }
    if (**at != ':') {
        return true;
    }
    (*at)++;
    return read_number(at, &range->stride) && range->stride > 0;
}

int hvd_cpulist_parse(const char *text, struct hvd_cpuset *set, struct hvd_error *err)
{
    struct hvd_cpuset found = {{0}};
    const char *at = text;
    struct range range;

    while (read_range(&at, &range)) {
        for (int cpu = range.first; cpu <= range.last; cpu += range.stride) {
            hvd_cpuset_add(&found, cpu);
        }
        if (*at == '\0') {
            *set = found;
            return 0;
        }
        if (*at++ != ',') {
            break;
        }
    }
    return hvd_fail(
        err, HVD_ERR_ARG,
        "'%.100s' is not a list of numbers from 0 to %d, such as 0-3,8 or 0-18:2", text,
        HVD_CPUSET_SIZE - 1);
}

static int run_end(const struct hvd_cpuset *set, int first, int stride)
{
    int last = first;

    while (hvd_cpuset_next(set, last) == last + stride) {
        last += stride;
    }
    return last;
}

/* Returns the range that starts at first. Adjacent cpus always form a range. The notation
 * of a stride is longer, and is used for three cpus or more. */
static struct range range_at(const struct hvd_cpuset *set, int first)
{
    int second = hvd_cpuset_next(set, first);
    struct range range = {first, first, 1};
    int stride = second - first;

    if (second < 0) {
        return range;
    }
    int last = run_end(set, first, stride);
    if (stride == 1 || last >= first + 2 * stride) {
        range.last = last;
        range.stride = stride;
    }
    return range;
}

static size_t append_range(char *text, size_t size, size_t length,
                           const struct range *range)
{
    char item[48];
    const char *comma = length > 0 ? "," : "";

    if (range->first == range->last) {
        snprintf(item, sizeof(item), "%s%d", comma, range->first);
    } else if (range->stride == 1) {
        snprintf(item, sizeof(item), "%s%d-%d", comma, range->first, range->last);
    } else {
        snprintf(item, sizeof(item), "%s%d-%d:%d", comma, range->first, range->last,
                 range->stride);
    }
    if (length < size) {
        snprintf(text + length, size - length, "%s", item);
    }
    return length + strlen(item);
}

size_t hvd_cpulist_format(const struct hvd_cpuset *set, char *text, size_t size)
{
    size_t length = 0;

    for (int cpu = hvd_cpuset_next(set, -1); cpu >= 0;) {
        struct range range = range_at(set, cpu);

        length = append_range(text, size, length, &range);
        cpu = hvd_cpuset_next(set, range.last);
    }
    if (length == 0) {
        return (size_t)snprintf(text, size, "-");
    }
    return length;
}
