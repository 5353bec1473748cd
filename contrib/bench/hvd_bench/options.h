/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvd-bench. Pure. */
#ifndef HVD_BENCH_OPTIONS_H
#define HVD_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "collectives/hvd.h"
#include "contrib/bench/hvd_bench/figures.h"
#include "contrib/bench/hvd_bench/sizes.h"

enum {
    BENCH_MOST_NAMES = 16,
    BENCH_MOST_BLOCKS = 1001
};

enum bench_what {
    BENCH_MEASURE,
    BENCH_HELP,
    BENCH_VERSION,
    BENCH_EXPLAIN,
    BENCH_EXPLAIN_LIST,
    BENCH_TUNE
};

enum bench_level {
    BENCH_TEAM,
    BENCH_RUNTIME,
    BENCH_LEVELS
};

enum bench_peer {
    BENCH_MPI,
    BENCH_GLOO,
    BENCH_LIMIT,
    BENCH_UCX_LIMIT,
    BENCH_BUILTIN,
    BENCH_PEERS
};

/* Values of one of the enums, each of them once. */
struct bench_list {
    int count;
    int items[BENCH_MOST_NAMES];
};

struct bench_options {
    enum bench_what what;
    struct bench_list collectives, dtypes, ops, levels, peers;
    const char *programs[BENCH_MOST_NAMES]; /* of peers: NAME=PROGRAM, or NULL */
    struct bench_sizes sizes;
    int blocks;
    double seconds; /* for all blocks of one contender, at one size */
    const char *json, *plot; /* file names or NULL */
    const char *tune; /* of BENCH_TUNE, the file to write */
    const char *layout; /* of BENCH_EXPLAIN, "4,4", or NULL: that of the job */
    int64_t explain_bytes;
    unsigned given; /* of bench_options_parse */
};

/* Returns 0 or HVD_ERR_ARG, with a sentence that names what is wrong. argv ends with
 * NULL; its strings must outlive options. Lists of words are cut in place. */
int bench_options_parse(int argc, char **argv, struct bench_options *options,
                        struct hvd_error *err);

void bench_help_print(FILE *out);

/* "sum", "average", ... */
const char *bench_op_name(enum hvd_op op);

/* As in --vs. */
const char *bench_peer_name(enum bench_peer peer);

bool bench_list_has(const struct bench_list *list, int item);

#endif
