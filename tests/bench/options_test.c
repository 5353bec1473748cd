/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvd-bench. */
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/outputs.h"

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

/* Lines that are refused: the text names the option or the value, and what was expected. */
static const struct refusal {
    const char *line, *named, *expected;
} refusals[] = {
    {"--sizzes 8", "--sizzes", "--help"},
    {"-x", "-x", "--help"},
    {"-yz allreduce", "-y", "--help"},
    {"allreduces", "allreduces", "allgather"},
    {"allreduce allreduce", "allreduce", "twice"},
    {"--csv", "--csv", "value"},
    {"--no-check=1", "--no-check=1", "takes no value"},

    {"--sizes=", "--sizes", "expected sizes"},
    {"--sizes ,", "--sizes", "expected sizes"},
    {"--sizes 0", "--sizes", "write bytes"},
    {"--sizes -8", "--sizes: \"-8\"", "write bytes"},
    {"--sizes 8X", "--sizes: \"8X\"", "write bytes"},
    {"--sizes 99999999999999999999", "--sizes", "write bytes"},
    {"--sizes 9999999999G", "--sizes", "1024G at most"},
    {"--sizes 64:8", "--sizes", "64:8 is empty"},
    {"--sizes 8:64:1", "--sizes", "whole number above 1, not \"1\""},
    {"--sizes 8:64:99999999999999999999", "--sizes", "whole number above 1"},
    {"--sizes 8:", "--sizes", "write bytes"},
    {"--dtype float31", "--dtype", "float32"},
    {"--dtype float32,float32", "--dtype", "twice"},
    {"--op mean", "--op", "average"},
    {"--op=", "--op", "needs a name"},
    {"--op sum,sum", "--op", "twice"},
    {"--list lenet", "--list", "resnet50"},
    {"--list vgg16,vgg16", "--list", "twice"},
    {"--level mpi", "--level", "team"},
    {"--level team,team", "--level", "twice"},
    {"--vs=", "--vs", "needs a name"},
    {"--vs nobody", "\"nobody\"", "gloo"},
    {"--vs limi", "\"limi\"", "limit"},
    {"--vs limit,limit", "--vs", "twice"},
    {"--vs limit=3", "--vs", "limit=3"},
    {"--vs gloo=", "gloo=", "path"},
    {"--blocks 0", "--blocks", "from 1 to 1001"},
    {"--blocks 1002", "--blocks", "from 1 to 1001"},
    {"--blocks 3x", "--blocks", "\"3x\""},
    {"--blocks 99999999999999999999", "--blocks", "from 1 to 1001"},
    {"--iterations -1", "--iterations", "from 1"},
    {"--warmup -1", "--warmup", "from 0"},
    {"--warmup=", "--warmup", "from 0"},
    {"--time nan", "--time", "seconds"},
    {"--time inf", "--time", "seconds"},
    {"--time 0", "--time", "above 0"},
    {"--time 1e300", "--time", "at most"},

    {"alltoall --inplace", "--inplace", "allreduce and broadcast"},
    {"sendrecv --inplace", "--inplace", "allreduce and broadcast"},
    {"allgather --list resnet50", "--list", "allreduce, broadcast and sendrecv"},
    {"pingpong --list resnet50", "--list", "allreduce, broadcast and sendrecv"},
    {"--wire float64", "--wire", "float16 or bfloat16"},
    {"broadcast --wire float16", "--wire", "allreduce of float32"},
    {"--dtype float32,int8 --wire float16", "--wire", "allreduce of float32"},
    {"--op max --wire bfloat16", "--wire", "sum or average"},

    {"--explain", "--explain", "a size"},
    {"--explain allreduce", "--explain", "a size"},
    {"--explain allreduce 0", "\"0\"", "write bytes"},
    {"--explain allreduce 8 allgather", "--explain", "3 words"},
    {"--explain pingpong 8", "--explain", "messages"},
    {"--explain allreduce 8 --csv x", "--explain", "--csv"},
    {"allreduce --explain --list", "--explain --list", "\"allreduce\""},
    {"--explain --dtype int8 --list", "--explain --list", "--dtype"},
    {"--explain allreduce 8 --list vgg16", "--explain", "--list"},
    {"allreduce --list", "--list", "needs a value"},
    {"--explain allreduce 8 --tune x", "--tune", "--explain"},
    {"barrier --plot x", "--plot", "besides barrier"},
    {"--list vgg16 --plot x", "--plot", "--sizes"},
    {"--layout 2,2", "--layout", "--explain"},
    {"--tune x --csv y", "--tune", "--csv"},
    {"--tune x --vs limit", "--tune", "--vs"},
    {"--tune x --dtype float16", "--tune", "--dtype"},
    {"--tune x alltoall", "--tune", "alltoall"},
    {"--tune x sendrecv", "--tune", "sendrecv"},

    {"--csv=", "--csv", "name of a file"},
    {"--tune=", "--tune", "name of a file"},
    {"--csv a --json a", "--csv and --json", "both write a"},
    {"--plot a --csv a.png", "--csv and --plot", "both write a.png"},
    {"--csv /nonexistent/a", "--csv", "directory /nonexistent/"},
    {"--json /dev/null/a", "--json", "Not a directory"},
    {"--plot /nonexistent/a", "--plot", "directory /nonexistent/"},
    {"--json a --plot /nonexistent/a", "--plot", "directory /nonexistent/"},
    {"--tune /nonexistent/a", "--tune", "directory /nonexistent/"},
    {"--csv /", "--csv", "is a directory"},
    {"--tune /etc/passwd", "--tune", "no table of algorithms"},
    {"--tune builtin", "--tune", "another name"},
};

static void check_refusals(void)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *refusal = &refusals[i];
        struct bench_options options;
        struct hvd_error err = {0};
        int status = parse(refusal->line, &options, &err);

        status = status < 0 ? status : bench_outputs_check(&options, &err);
        if (!tap_ok(status == HVD_ERR_ARG && strstr(err.text, refusal->named) != NULL &&
                        strstr(err.text, refusal->expected) != NULL,
                    "%s is refused", refusal->line)) {
            tap_note("status %d: %s", status, err.text);
        }
    }
}

/* Names of thousands of characters do not fit a line of the table. */
static void check_long(void)
{
    static char name[5001];
    char *argv[] = {(char *)"hvd-bench", (char *)"--plot", name};
    struct bench_options options;
    struct hvd_error err = {0};

    memset(name, 'x', sizeof(name) - 1);
    tap_ok(bench_options_parse(3, argv, &options, &err) == 0 &&
               bench_outputs_check(&options, &err) == HVD_ERR_ARG &&
               strstr(err.text, "--plot") != NULL,
           "a name that is too long is refused");
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
    tap_ok(parse("--explain --list", &options, NULL) == 0 &&
               options.what == BENCH_EXPLAIN_LIST && options.lists.count == 0,
           "the list of the algorithms");
    check_refusals();
    check_long();
    return tap_done();
}
