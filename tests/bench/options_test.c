/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvd-bench. */
#include "contrib/bench/hvd_bench/options.h"

#include <string.h>

#include "tests/tap.h"

enum {
    MOST_WORDS = 16
};

/* Splits a copy of the line at its blanks; static: options borrow it. */
static int parse(const char *line, struct bench_options *options, struct hvd_error *err)
{
    static char copy[256];
    char *argv[MOST_WORDS + 1] = {(char *)"hvd-bench"}, *rest = NULL;
    int argc = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && argc < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    return bench_options_parse(argc, argv, options, err);
}

/* Whether the line is refused with a text that has this word in it. */
static bool refuses(const char *line, const char *word)
{
    struct bench_options options;
    struct hvd_error err = {0};
    bool good =
        parse(line, &options, &err) == HVD_ERR_ARG && strstr(err.text, word) != NULL;

    if (!good) {
        tap_note("%s: \"%s\"", line, err.text);
    }
    return good;
}

static void check_refusals(void)
{
    tap_ok(refuses("--sizzes 8", "--sizzes"), "an unknown option is named");
    tap_ok(refuses("allreduces", "allreduces"), "an unknown collective is named");
    tap_ok(refuses("--dtype float31", "float31") && refuses("--op mean", "mean") &&
               refuses("--list lenet", "lenet") && refuses("--level mpi", "mpi"),
           "unknown types, operations, lists and levels are named");
    tap_ok(refuses("--sizes 8X", "8X"), "a wrong size is named");
    tap_ok(refuses("--blocks 0", "--blocks") && refuses("--blocks 3x", "3x") &&
               refuses("--iterations -1", "--iterations") &&
               refuses("--time nan", "--time") && refuses("--time 0", "--time"),
           "wrong numbers are named with their option");
    tap_ok(refuses("--csv", "--csv"), "an option without its value is named");
    tap_ok(refuses("alltoall --inplace", "--inplace") &&
               refuses("allgather --list resnet50", "--list"),
           "options that do not fit the collective are refused");
    tap_ok(refuses("--wire float64", "float64") &&
               refuses("broadcast --wire float16", "--wire") &&
               refuses("--dtype float32,int8 --wire float16", "--wire") &&
               refuses("--op max --wire bfloat16", "--wire"),
           "--wire is for sums of float32, as 16-bit floats");
    tap_ok(refuses("--explain", "--explain") && refuses("--explain allreduce", "size") &&
               refuses("--layout 2,2", "--layout"),
           "--explain needs a size, --layout needs --explain");
}

int main(void)
{
    struct bench_options options;

    tap_ok(parse("", &options, NULL) == 0 && options.collective_count == 1 &&
               options.collectives[0] == BENCH_ALLREDUCE && options.sizes.count > 3 &&
               options.dtypes[0] == HVD_FLOAT32 && options.ops[0] == HVD_SUM &&
               options.has_all_levels && !options.is_unchecked,
           "without options: allreduce of float32, summed, checked");
    tap_ok(parse("allgather barrier --dtype float16,int8 --op max,min --sizes 4,8 --vs "
                 "mpi,limit --level team",
                 &options, NULL) == 0 &&
               options.collective_count == 2 && options.dtype_count == 2 &&
               options.dtypes[1] == HVD_INT8 && options.ops[0] == HVD_MAX &&
               options.sizes.count == 2 && options.peers.count == 2 &&
               options.has_team_level && !options.has_runtime_level &&
               !options.has_all_levels,
           "lists of everything");
    tap_ok(parse("--list resnet50,vgg16", &options, NULL) == 0 &&
               options.lists.count == 2 && options.sizes.count == 0,
           "a list of gradients replaces the sizes");
    tap_ok(parse("--wire bfloat16 --op sum,average", &options, NULL) == 0 &&
               options.wire == HVD_BFLOAT16,
           "a wire type");
    tap_ok(parse("--explain allreduce 64M --layout 4,4", &options, NULL) == 0 &&
               options.what == BENCH_EXPLAIN && options.explain_bytes == 64 << 20 &&
               strcmp(options.layout, "4,4") == 0,
           "what to explain");
    check_refusals();
    return tap_done();
}
