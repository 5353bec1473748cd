/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in Slurm's texts, alone and one per node ("4(x2),3"), and what follows. */
#include "spank/counts.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* More than any cluster; keeps the sums below far from overflow. */
enum {
    NUMBER_MAX = 100000
};

int hvd_number_of(const char *text)
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

bool hvd_count_next(const char **cursor, struct hvd_count_run *run)
{
    struct hvd_count_run read = {.nodes = 1};
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

int hvd_count_least(const char *text)
{
    const char *cursor = text;
    struct hvd_count_run run;
    int least = INT_MAX;

    if (text == NULL) {
        return 0;
    }
    while (hvd_count_next(&cursor, &run)) {
        least = run.value < least ? run.value : least;
    }
    return *cursor == '\0' && least != INT_MAX ? least : 0;
}

/* How many of the run's nodes come before `node`, if the run starts at node `first`. */
static int nodes_before(const struct hvd_count_run *run, long first, int node)
{
    long before = node - first;

    before = before < 0 ? 0 : before;
    return (int)(before < run->nodes ? before : run->nodes);
}

bool hvd_seat_cross(const struct hvd_seat *seat, const char *tasks_per_node, int *rank,
                    int *size)
{
    const char *cursor = tasks_per_node;
    struct hvd_count_run run;
    long nodes = 0;
    long tasks = 0;
    int before = 0;
    int all = 0;
    int own = 0;

    while (hvd_count_next(&cursor, &run) && nodes <= NUMBER_MAX) {
        if (run.value > seat->local_rank) {
            before += nodes_before(&run, nodes, seat->node);
            all += run.nodes;
        }
        if (nodes <= seat->node && seat->node < nodes + run.nodes) {
            own = run.value;
        }
        nodes += run.nodes;
        tasks += (long)run.value * run.nodes;
    }
    if (*cursor != '\0' || nodes != seat->nodes || tasks != seat->tasks ||
        own != seat->local_size || seat->local_rank >= own) {
        return false;
    }
    *rank = before;
    *size = all;
    return true;
}
