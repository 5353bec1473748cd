/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line. */
#include "contrib/bench/hvd_bench/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Lists of words are cut in place, in argv. */
enum choice {
    OPTION_SIZES = 256,
    OPTION_DTYPE,
    OPTION_OP,
    OPTION_LEVEL,
    OPTION_VS,
    OPTION_BLOCKS,
    OPTION_TIME,
    OPTION_JSON,
    OPTION_PLOT,
    OPTION_EXPLAIN,
    OPTION_LAYOUT,
    OPTION_TUNE,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"sizes", required_argument, NULL, OPTION_SIZES},
    {"dtype", required_argument, NULL, OPTION_DTYPE},
    {"op", required_argument, NULL, OPTION_OP},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"vs", required_argument, NULL, OPTION_VS},
    {"blocks", required_argument, NULL, OPTION_BLOCKS},
    {"time", required_argument, NULL, OPTION_TIME},
    {"json", required_argument, NULL, OPTION_JSON},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"explain", no_argument, NULL, OPTION_EXPLAIN},
    {"layout", required_argument, NULL, OPTION_LAYOUT},
    {"tune", required_argument, NULL, OPTION_TUNE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

enum {
    MOST_SECONDS = 100000
};

static const char default_sizes[] = "8,64,1K,16K,256K,4M,64M";
static const char tuned_sizes[] = "8,64,512,2K,8K,16K,32K,64K,128K,256K,1M,4M,16M,64M";

/* --- names ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum hvd_op op;
} op_names[] = {
    {"sum", HVD_SUM}, {"average", HVD_AVERAGE}, {"avg", HVD_AVERAGE},
    {"min", HVD_MIN}, {"max", HVD_MAX},         {"product", HVD_PRODUCT},
};

/* In the order of the contenders that hvd_bench.c makes of them. */
const char *const bench_peer_names[] = {"mpi",     "gloo",    "limit", "ucx-limit",
                                        "builtin", "horovod", NULL};

static bool takes_program(const char *name)
{
    return strcmp(name, "gloo") == 0 || strcmp(name, "horovod") == 0;
}

int bench_peer_find(const char *text, struct hvd_error *err)
{
    size_t length = strcspn(text, "=");
    bool has_program = text[length] == '=';

    for (int i = 0; bench_peer_names[i] != NULL; i++) {
        const char *name = bench_peer_names[i];

        if (strlen(name) != length || strncmp(name, text, length) != 0) {
            continue;
        }
        if (has_program && !takes_program(name)) {
            return hvd_fail(err, HVD_ERR_ARG, "--vs: expected %s, found \"%.200s\"", name,
                            text);
        }
        if (has_program && text[length + 1] == '\0') {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--vs: expected a path behind %s=, found nothing", name);
        }
        return i;
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--vs: unknown peer \"%.100s\"; known are mpi, gloo, limit, "
                    "ucx-limit, builtin, horovod",
                    text);
}

int bench_dtype_find(const char *name)
{
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        if (strcmp(name, hvd_dtype_name((enum hvd_dtype)dtype)) == 0) {
            return dtype;
        }
    }
    return -1;
}

int bench_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (strcmp(name, op_names[i].name) == 0) {
            return (int)op_names[i].op;
        }
    }
    return -1;
}

const char *bench_op_name(enum hvd_op op)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (op_names[i].op == op) {
            return op_names[i].name;
        }
    }
    return "?";
}

/* --- values --------------------------------------------------------------------------- */

static int split(const char *option, char *text, struct bench_names *names,
                 struct hvd_error *err)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        if (names->count == BENCH_MOST_NAMES) {
            return hvd_fail(err, HVD_ERR_ARG, "--%s: more than %d names", option,
                            BENCH_MOST_NAMES);
        }
        for (int i = 0; i < names->count; i++) {
            if (strcmp(names->items[i], word) == 0) {
                return hvd_fail(err, HVD_ERR_ARG, "--%s: \"%.100s\" is named twice",
                                option, word);
            }
        }
        names->items[names->count++] = word;
    }
    return names->count > 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG, "--%s needs a name, see --help", option);
}

static int read_dtypes(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_names names = {0};
    int status = split("dtype", text, &names, err);

    options->dtype_count = 0;
    for (int i = 0; i < names.count && status == 0; i++) {
        int dtype = bench_dtype_find(names.items[i]);

        if (dtype < 0) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "--dtype: no data type \"%.100s\": float32, float16, bfloat16, "
                "float64, int32, ... as in hvd.h",
                names.items[i]);
        }
        options->dtypes[options->dtype_count++] = (enum hvd_dtype)dtype;
    }
    return status;
}

static int read_ops(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_names names = {0};
    int status = split("op", text, &names, err);

    options->op_count = 0;
    for (int i = 0; i < names.count && status == 0; i++) {
        int op = bench_op_find(names.items[i]);

        if (op < 0) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "--op: no operation \"%.100s\": sum, average, min, max, product",
                names.items[i]);
        }
        options->ops[options->op_count++] = (enum hvd_op)op;
    }
    return status;
}

static int read_sizes(const char *text, struct bench_options *options,
                      struct hvd_error *err)
{
    struct hvd_error inner = {0};

    return bench_sizes_parse(text, &options->sizes, &inner) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG, "--sizes: %.400s", inner.text);
}

static int read_peers(char *text, struct bench_options *options, struct hvd_error *err)
{
    int status = split("vs", text, &options->peers, err);

    for (int i = 0; i < options->peers.count && status == 0; i++) {
        int peer = bench_peer_find(options->peers.items[i], err);

        status = peer < 0 ? peer : 0;
    }
    return status;
}

static int read_levels(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_names names = {0};
    int status = split("level", text, &names, err);

    options->has_all_levels = false;
    for (int i = 0; i < names.count && status == 0; i++) {
        if (strcmp(names.items[i], "team") == 0) {
            options->has_team_level = true;
        } else if (strcmp(names.items[i], "runtime") == 0) {
            options->has_runtime_level = true;
        } else {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--level: unknown level \"%.100s\"; known are team, runtime",
                            names.items[i]);
        }
    }
    return status;
}

static int read_blocks(const char *text, struct bench_options *options,
                       struct hvd_error *err)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 1 || number > BENCH_MOST_BLOCKS) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--blocks takes a number from 1 to %d, not \"%.100s\"",
                        BENCH_MOST_BLOCKS, text);
    }
    options->blocks = (int)number;
    return 0;
}

static int read_seconds(const char *text, double *seconds, struct hvd_error *err)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || *end != '\0' || !(number > 0 && number <= MOST_SECONDS)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--time takes seconds, above 0 and at most %d, not \"%.100s\"",
                        MOST_SECONDS, text);
    }
    *seconds = number;
    return 0;
}

static int read_option(int option, char *text, struct bench_options *options,
                       struct hvd_error *err)
{
    switch (option) {
    case OPTION_SIZES:
        return read_sizes(text, options, err);
    case OPTION_DTYPE:
        return read_dtypes(text, options, err);
    case OPTION_OP:
        return read_ops(text, options, err);
    case OPTION_LEVEL:
        return read_levels(text, options, err);
    case OPTION_VS:
        return read_peers(text, options, err);
    case OPTION_BLOCKS:
        return read_blocks(text, options, err);
    case OPTION_TIME:
        return read_seconds(text, &options->seconds, err);
    case OPTION_JSON:
        options->json = text;
        return 0;
    case OPTION_PLOT:
        options->plot = text;
        return 0;
    case OPTION_TUNE:
        options->what = BENCH_TUNE;
        options->tune = text;
        return 0;
    case OPTION_LAYOUT:
        options->layout = text;
        return 0;
    case OPTION_EXPLAIN:
        options->what = BENCH_EXPLAIN;
        return 0;
    case OPTION_HELP:
        options->what = BENCH_HELP;
        return 0;
    default:
        options->what = BENCH_VERSION;
        return 0;
    }
}

static int add_collective(const char *word, struct bench_options *options,
                          struct hvd_error *err)
{
    int collective = bench_collective_find(word);

    if (collective < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "unknown collective \"%.100s\"; known are allreduce, allgather, broadcast, "
            "alltoall, reducescatter, reduce, gather, scatter, sendrecv, pingpong, "
            "barrier",
            word);
    }
    for (int i = 0; i < options->collective_count; i++) {
        if (options->collectives[i] == (enum bench_collective)collective) {
            return hvd_fail(err, HVD_ERR_ARG, "%s is named twice", word);
        }
    }
    options->collectives[options->collective_count++] = (enum bench_collective)collective;
    return 0;
}

/* COLLECTIVE..., of --explain COLLECTIVE BYTES. */
static int read_words(int count, char **words, struct bench_options *options,
                      struct hvd_error *err)
{
    int status = 0;

    if (options->what == BENCH_EXPLAIN_LIST && count > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain --list takes no word, found \"%.100s\"", words[0]);
    }
    if (options->what == BENCH_EXPLAIN && count != 2) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain takes a collective and a size, as --explain allreduce "
                        "64M, found %d word%s",
                        count, count == 1 ? "" : "s");
    }
    for (int i = 0; i < count && status == 0; i++) {
        status = options->what == BENCH_EXPLAIN && i == 1
                     ? bench_size_parse(words[i], &options->explain_bytes, err)
                     : add_collective(words[i], options, err);
    }
    return status;
}

static int complete(struct bench_options *options, struct hvd_error *err)
{
    static const enum bench_collective tuned[] = {BENCH_ALLREDUCE, BENCH_REDUCESCATTER,
                                                  BENCH_ALLGATHER, BENCH_BROADCAST};
    bool tunes = options->what == BENCH_TUNE;

    for (int i = 0; options->collective_count == i && i < (tunes ? 4 : 1); i++) {
        options->collectives[options->collective_count++] = tuned[i];
    }
    if (options->seconds == 0) {
        options->seconds = tunes ? 0.15 : 0.2; /* of many alternatives in several turns */
    }
    if (options->sizes.count == 0) {
        return bench_sizes_parse(tunes ? tuned_sizes : default_sizes, &options->sizes,
                                 err);
    }
    return 0;
}

/* The bit of an option in bench_options.given. */
static unsigned bit(int option)
{
    return 1u << (option - OPTION_SIZES);
}

/* --explain and --tune refuse the options that they would ignore. */
static int check_mode(const struct bench_options *options, struct hvd_error *err)
{
    static const int of_explain[] = {OPTION_EXPLAIN, OPTION_LAYOUT, OPTION_DTYPE, 0};
    static const int of_tune[] = {OPTION_TUNE, OPTION_SIZES, OPTION_BLOCKS, OPTION_TIME,
                                  0};
    bool explains = options->what == BENCH_EXPLAIN;
    const int *may = explains ? of_explain : of_tune;
    unsigned others = options->given;

    if (!explains && options->what != BENCH_TUNE) {
        return 0;
    }
    for (; *may != 0; may++) {
        others &= ~bit(*may);
    }
    for (const struct option *option = long_options; option->name != NULL; option++) {
        if ((others & bit(option->val)) != 0) {
            return hvd_fail(err, HVD_ERR_ARG, "--%s cannot be used with --%s",
                            lists      ? "explain --list"
                            : explains ? "explain"
                                       : "tune",
                            option->name);
        }
    }
    return 0;
}

/* --- all together ---------------------------------------------------------------------- */

/* A table has no rows for those by a root: they use the ones of reducescatter and alltoall. */
static int check_explained(enum bench_collective collective, struct hvd_error *err)
{
    const char *name = bench_collective_name(collective);

    if (bench_collective_is_of_pairs(collective)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain: %s is messages, which have no steps", name);
    }
    if (collective < BENCH_REDUCE || collective > BENCH_SCATTER) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--explain: %s runs as %s in which only rank 0 has %s; ask for that",
                    name, collective == BENCH_REDUCE ? "a reducescatter" : "an alltoall",
                    collective == BENCH_SCATTER ? "input" : "output");
}

/* An alltoall plans its second half while it runs, by the job's choices. */
static int check_tuned(enum bench_collective collective, struct hvd_error *err)
{
    return collective == BENCH_ALLTOALL || collective >= BENCH_REDUCE
               ? hvd_fail(err, HVD_ERR_ARG,
                          "--tune: %s has no choice of algorithms that can be timed "
                          "alone",
                          bench_collective_name(collective))
               : 0;
}

/* --tune, --explain and --plot take some collectives only. */
int bench_options_check(const struct bench_options *options, struct hvd_error *err)
{
    bool has_sizes = options->collective_count == 0;
    int status = 0;

    for (int i = 0; i < options->collective_count && status == 0; i++) {
        enum bench_collective collective = options->collectives[i];

        has_sizes = has_sizes || collective != BENCH_BARRIER;
        if (options->what == BENCH_EXPLAIN) {
            status = check_explained(collective, err);
        } else if (options->what == BENCH_TUNE) {
            status = check_tuned(collective, err);
        }
    }
    if (status == 0 && options->plot != NULL && !has_sizes) {
        status = hvd_fail(err, HVD_ERR_ARG,
                          "--plot draws time against size: expected a collective besides "
                          "barrier");
    }
    if (status == 0 && options->layout != NULL && options->what != BENCH_EXPLAIN) {
        status = hvd_fail(err, HVD_ERR_ARG, "--layout is for --explain");
    }
    return status;
}

/* What getopt_long does not know; word: where it is, but for letters. */
static int fail_option(const char *word, struct hvd_error *err)
{
    if (optopt > 0 && optopt < OPTION_SIZES) {
        return hvd_fail(err, HVD_ERR_ARG, "unknown option -%c, see --help", optopt);
    }
    return optopt > 0
               ? hvd_fail(err, HVD_ERR_ARG, "%.*s takes no value, found %.100s",
                          (int)strcspn(word, "="), word, word)
               : hvd_fail(err, HVD_ERR_ARG, "unknown option %.100s, see --help", word);
}

int bench_options_parse(int argc, char **argv, struct bench_options *options,
                        struct hvd_error *err)
{
    int option, status = 0;

    *options = (struct bench_options){
        .dtype_count = 1,
        .dtypes = {HVD_FLOAT32},
        .op_count = 1,
        .ops = {HVD_SUM},
        .has_all_levels = true,
        .blocks = 11,
    };
    opterr = 0;
    optind = 0; /* begins anew, in the middle of a word, too */
    while (status == 0 &&
           (option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == ':' && optopt == OPTION_LIST && options->what == BENCH_EXPLAIN) {
            options->what = BENCH_EXPLAIN_LIST; /* without models */
            continue;
        }
        if (option == ':') {
            return hvd_fail(err, HVD_ERR_ARG, "%s needs a value, see --help",
                            argv[optind - 1]);
        }
        options->given |= option == '?' ? 0 : bit(option);
        status = option == '?' ? fail_option(argv[optind - 1], err)
                               : read_option(option, optarg, options, err);
    }
    if (status == 0) {
        status = check_mode(options, err);
    }
    if (status == 0) {
        status = read_words(argc - optind, argv + optind, options, err);
    }
    if (status == 0) {
        status = bench_options_check(options, err);
    }
    return status < 0 ? status : complete(options, err);
}
