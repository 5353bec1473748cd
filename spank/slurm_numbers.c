/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the numbers in Slurm's texts. */
#include "spank/slurm_numbers.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* More than any cluster has; keeps the sums below far from overflow. */
enum {
    NUMBER_MAX = 100000
};

/* More GPUs than a node has; keeps products with it far from overflow. */
enum {
    GPUS_MAX = 4096
};

int hvd_spank_number_of(const char *text)
{
    char *end = NULL;
    long value = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : 0;

    return value > 0 && value <= NUMBER_MAX && *end == '\0' ? (int)value : 0;
}

static bool read_number(const char **cursor, int *number)
{
    char *end = NULL;
    long value;

    if (!isdigit((unsigned char)**cursor)) {
        return false;
    }
    value = strtol(*cursor, &end, 10);
    *cursor = end;
    *number = (int)value;
    return value >= 0 && value <= NUMBER_MAX;
}

static bool skip(const char **cursor, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*cursor, text, length) != 0) {
        return false;
    }
    *cursor += length;
    return true;
}

bool hvd_spank_count_next(const char **cursor, struct hvd_spank_count_run *run)
{
    struct hvd_spank_count_run read = {.nodes = 1};
    const char *at = *cursor;

    if (!read_number(&at, &read.value)) {
        return false;
    }
    if (skip(&at, "(x") && (!read_number(&at, &read.nodes) || !skip(&at, ")"))) {
        return false;
    }
    if (*at != '\0' && (!skip(&at, ",") || *at == '\0')) {
        return false;
    }
    *cursor = at;
    *run = read;
    return true;
}

int hvd_spank_count_least(const char *text)
{
    const char *cursor = text;
    struct hvd_spank_count_run run;
    int least = INT_MAX;

    if (text == NULL) {
        return 0;
    }
    while (hvd_spank_count_next(&cursor, &run)) {
        least = run.value < least ? run.value : least;
    }
    return *cursor == '\0' && least != INT_MAX ? least : 0;
}

/* Reads the number after the last ':', ignoring Slurm's "(S:0-1)" at the end. */
int hvd_spank_gres_count(const char *text)
{
    size_t length = strcspn(text, "(");
    size_t start = length;
    char *end = NULL;
    long count;

    if (strchr(text, ',') != NULL) {
        return 0;
    }
    while (start > 0 && text[start - 1] != ':') {
        start--;
    }
    if (length - start == 3 && strncmp(text + start, "gpu", 3) == 0) {
        return 1;
    }
    if (!isdigit((unsigned char)text[start])) {
        return 0;
    }
    count = strtol(text + start, &end, 10);
    return end == text + length && count <= GPUS_MAX ? (int)count : 0;
}
