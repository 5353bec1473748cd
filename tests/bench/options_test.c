/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvd-bench. */
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/outputs.h"

#include <string.h>

#include "tests/tap.h"

enum {
    MOST_WORDS = 16
};

/* Splits a copy of the line at its blanks and parses the words. The copy is static,
 * because options borrow it. */
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

/* Lines that are refused. The error names the option or the value, and what was
 * expected. */
static const struct refusal {
    const char *line, *named, *expected;
} refusals[] = {
    {"--sizzes 8", "--sizzes", "--help"},
    {"-x", "-x", "--help"},
    {"-", "option -", "--help"},
    {"--size 8", "--size", "unknown option"},
    {"-yz allreduce", "-y", "--help"},
    {"allreduces", "allreduces", "allgather"},
    {"allreduce allreduce", "allreduce", "twice"},
    {"--json", "--json", "value"},
    {"--format mpi", "--format", "known are table, osu, nccl-tests"},
    {"--format osu --vs limit", "--format osu", "expected one --level and no --vs"},
    {"--format osu --level team,runtime", "--format osu", "expected one --level"},
    {"sendrecv --format osu", "no rows for sendrecv", "bandwidth"},
    {"barrier --format nccl-tests", "no rows for barrier", "do not measure"},
    {"--format osu --tune f", "--tune", "--format"},

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
    {"--op avg,average", "--op", "twice"},
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
    {"--time nan", "--time", "seconds"},
    {"--time inf", "--time", "seconds"},
    {"--time 0", "--time", "above 0"},
    {"--time 1e300", "--time", "at most"},

    {"allreduce --explain --list", "--explain --list", "\"allreduce\""},
    {"--explain --dtype int8 --list", "--explain --list", "--dtype"},
    {"--csv a", "--csv", "unknown option"},
    {"--vs torch", "\"torch\"", "gloo"},
    {"--vs horovod=python3", "\"horovod=python3\"", "--lab"},
    {"--help=1", "--help=1", "takes no value"},

    {"--explain", "--explain", "a size"},
    {"--explain allreduce", "--explain", "a size"},
    {"--explain allreduce 0", "\"0\"", "write bytes"},
    {"--explain allreduce 8 allgather", "--explain", "3 words"},
    {"--explain pingpong 8", "--explain", "messages"},
    {"--explain allreduce 8 --json x", "--explain", "--json"},
    {"--explain allreduce 8 --tune x", "--tune", "--explain"},
    {"barrier --plot x", "--plot", "besides barrier"},
    {"--layout 2,2", "--layout", "--explain"},
    {"--tune x --json y", "--tune", "--json"},
    {"--tune x --vs limit", "--tune", "--vs"},
    {"--tune x --dtype float16", "--tune", "--dtype"},
    {"--tune x alltoall", "--tune", "alltoall"},
    {"--tune x sendrecv", "--tune", "sendrecv"},

    {"--tune=", "--tune", "name of a file"},
    {"--json=", "--json", "name of a file"},
    {"--plot a --json a.png", "--json and --plot", "both write a.png"},
    {"--json /nonexistent/a", "--json", "directory /nonexistent/"},
    {"--json /dev/null/a", "--json", "Not a directory"},
    {"--plot /nonexistent/a", "--plot", "directory /nonexistent/"},
    {"--json a --plot /nonexistent/a", "--plot", "directory /nonexistent/"},
    {"--tune /nonexistent/a", "--tune", "directory /nonexistent/"},
    {"--json /", "--json", "is a directory"},
    {"--tune /etc/passwd", "--tune", "not a table of algorithms"},
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

    tap_ok(parse("", &options, NULL) == 0 && options.collectives.count == 1 &&
               options.collectives.items[0] == BENCH_ALLREDUCE &&
               options.sizes.count > 3 && options.dtypes.items[0] == HVD_FLOAT32 &&
               options.ops.items[0] == HVD_SUM && options.levels.count == BENCH_LEVELS,
           "without options: allreduce of float32, summed");
    tap_ok(parse("allgather barrier --dtype float16,int8 --op max,min --sizes 4,8 --vs "
                 "mpi,limit --level team",
                 &options, NULL) == 0 &&
               options.collectives.count == 2 && options.dtypes.count == 2 &&
               options.dtypes.items[1] == HVD_INT8 && options.ops.items[0] == HVD_MAX &&
               options.sizes.count == 2 && options.peers.count == 2 &&
               options.levels.count == 1 && options.levels.items[0] == BENCH_TEAM,
           "lists of collectives, types, operations, levels, peers and sizes");
    tap_ok(parse("--explain --list", &options, NULL) == 0 &&
               options.what == BENCH_EXPLAIN_LIST &&
               parse("--list --explain", &options, NULL) == 0 &&
               options.what == BENCH_EXPLAIN_LIST,
           "--explain --list, in either order");
    tap_ok(parse("--vs mpi,gloo=python", &options, NULL) == 0 &&
               options.peers.items[1] == BENCH_GLOO && options.programs[0] == NULL &&
               strcmp(options.programs[1], "python") == 0,
           "the program of a peer");
    tap_ok(parse("--explain allreduce 64M --layout 4,4", &options, NULL) == 0 &&
               options.what == BENCH_EXPLAIN && options.explain_bytes == 64 << 20 &&
               strcmp(options.layout, "4,4") == 0,
           "a collective to explain");
    check_refusals();
    check_long();
    return tap_done();
}
