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

/* How the results are printed. */
enum bench_format {
    BENCH_TABLE, /* all contenders side by side */
    BENCH_OSU, /* as the OSU micro-benchmarks: the times of one contender */
    BENCH_NCCL_TESTS, /* as nccl-tests: of one contender */
    BENCH_FORMATS
};

/* Values of one of the enums, each at most once. */
struct bench_list {
    int count;
    int items[BENCH_MOST_NAMES];
};

struct bench_options {
    enum bench_what what;
    struct bench_list collectives, dtypes, ops, levels, peers;
    enum bench_format format;
    /* by peer: the PROGRAM of NAME=PROGRAM, or NULL */
    const char *programs[BENCH_MOST_NAMES];
    struct bench_sizes sizes;
    int blocks;
    double seconds; /* time for all blocks of one contender at one size */
    const char *json, *plot; /* file names or NULL */
    const char *tune; /* the file that --tune writes */
    const char *layout; /* for --explain, such as "4,4"; NULL: that of the job */
    int64_t explain_bytes;
    unsigned given; /* internal to bench_options_parse */
};

/* Returns 0, or HVD_ERR_ARG with a sentence that names the mistake. argv ends with NULL;
 * its strings must outlive options. Lists of words are cut in place. */
int bench_options_parse(int argc, char **argv, struct bench_options *options,
                        struct hvd_error *err);

void bench_help_print(FILE *out);

/* Returns "sum", "average", ... */
const char *bench_op_name(enum hvd_op op);

/* Returns the name that --format uses. */
const char *bench_format_name(enum bench_format format);

/* Returns the name that --vs uses. */
const char *bench_peer_name(enum bench_peer peer);

bool bench_list_has(const struct bench_list *list, int item);

#endif
