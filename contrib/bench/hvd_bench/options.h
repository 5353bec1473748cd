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

/* A few words of the command line; borrowed from argv. */
struct bench_names {
    int count;
    const char *items[BENCH_MOST_NAMES];
};

struct bench_options {
    enum bench_what what;
    int collective_count;
    enum bench_collective collectives[BENCH_COLLECTIVES];
    struct bench_sizes sizes;
    int dtype_count;
    enum hvd_dtype dtypes[HVD_DTYPE_COUNT];
    int op_count;
    enum hvd_op ops[HVD_OP_COUNT];
    bool has_team_level;
    bool has_runtime_level;
    bool has_all_levels; /* the user named none */
    struct bench_names peers; /* NAME or NAME=PROGRAM */
    int blocks;
    double seconds; /* for all blocks of one contender, at one size */
    const char *json, *plot; /* file names or NULL */
    const char *tune; /* of BENCH_TUNE, the file to write */
    const char *layout; /* of BENCH_EXPLAIN, "4,4", or NULL: that of the job */
    int64_t explain_bytes;
    unsigned given; /* of bench_options_parse */
};

/* Returns 0 or HVD_ERR_ARG, with a sentence that names what is wrong. argv ends with NULL; its
 * strings must outlive options. Lists of words are cut in place. */
int bench_options_parse(int argc, char **argv, struct bench_options *options,
                        struct hvd_error *err);

void bench_help_print(FILE *out);

/* "sum", "average", ... */
const char *bench_op_name(enum hvd_op op);

/* The names of --vs; the last is NULL. */
extern const char *const bench_peer_names[];

/* The index of the name in NAME or NAME=PROGRAM. HVD_ERR_ARG for an unknown peer, for one that takes
 * no program, and for an empty PROGRAM. */
int bench_peer_find(const char *text, struct hvd_error *err);

#endif
