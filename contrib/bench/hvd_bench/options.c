/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line. */
#include "contrib/bench/hvd_bench/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/bench/hvd_bench/gradient_list.h"

/* Lists of words are cut in place, in argv. */
enum choice {
    OPTION_SIZES = 256,
    OPTION_DTYPE,
    OPTION_OP,
    OPTION_WIRE,
    OPTION_IN_PLACE,
    OPTION_LIST,
    OPTION_LEVEL,
    OPTION_VS,
    OPTION_BLOCKS,
    OPTION_WARM_UP,
    OPTION_ITERATIONS,
    OPTION_TIME,
    OPTION_CHECK,
    OPTION_NO_CHECK,
    OPTION_PROGRESS,
    OPTION_CSV,
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
    {"wire", required_argument, NULL, OPTION_WIRE},
    {"inplace", no_argument, NULL, OPTION_IN_PLACE},
    {"list", required_argument, NULL, OPTION_LIST},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"vs", required_argument, NULL, OPTION_VS},
    {"blocks", required_argument, NULL, OPTION_BLOCKS},
    {"warmup", required_argument, NULL, OPTION_WARM_UP},
    {"iterations", required_argument, NULL, OPTION_ITERATIONS},
    {"time", required_argument, NULL, OPTION_TIME},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"no-check", no_argument, NULL, OPTION_NO_CHECK},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"csv", required_argument, NULL, OPTION_CSV},
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

static int read_wire(const char *text, struct bench_options *options,
                     struct hvd_error *err)
{
    int dtype = bench_dtype_find(text);

    if (dtype != HVD_FLOAT16 && dtype != HVD_BFLOAT16) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--wire takes float16 or bfloat16, not \"%.100s\"", text);
    }
    options->wire = dtype;
    return 0;
}

static int read_lists(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_gradients gradients;
    int status = split("list", text, &options->lists, err);

    for (int i = 0; i < options->lists.count && status == 0; i++) {
        if (bench_gradients_find(options->lists.items[i], &gradients) != 0) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "--list: unknown model \"%.100s\"; known are resnet50, resnet101, "
                "inception3, vgg16, bert_base",
                options->lists.items[i]);
        }
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

static int read_count(const char *option, const char *text, int least, int most,
                      int *count, struct hvd_error *err)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < least || number > most) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--%s takes a number from %d to %d, not \"%.100s\"", option,
                        least, most, text);
    }
    *count = (int)number;
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

static int read_numbers(int option, const char *text, struct bench_options *options,
                        struct hvd_error *err)
{
    switch (option) {
    case OPTION_BLOCKS:
        return read_count("blocks", text, 1, BENCH_MOST_BLOCKS, &options->blocks, err);
    case OPTION_WARM_UP:
        return read_count("warmup", text, 0, 1000000, &options->warm_up, err);
    case OPTION_ITERATIONS:
        return read_count("iterations", text, 1, 100000000, &options->iterations, err);
    default:
        return read_seconds(text, &options->seconds, err);
    }
}

static int read_flag(int option, struct bench_options *options)
{
    switch (option) {
    case OPTION_IN_PLACE:
        options->is_in_place = true;
        break;
    case OPTION_CHECK:
        options->is_unchecked = false;
        break;
    case OPTION_NO_CHECK:
        options->is_unchecked = true;
        break;
    case OPTION_PROGRESS:
        options->shows_progress = true;
        break;
    case OPTION_EXPLAIN:
        options->what = BENCH_EXPLAIN;
        break;
    case OPTION_HELP:
        options->what = BENCH_HELP;
        break;
    default:
        options->what = BENCH_VERSION;
        break;
    }
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
    case OPTION_WIRE:
        return read_wire(text, options, err);
    case OPTION_LIST:
        return read_lists(text, options, err);
    case OPTION_LEVEL:
        return read_levels(text, options, err);
    case OPTION_VS:
        return read_peers(text, options, err);
    case OPTION_CSV:
        options->csv = text;
        return 0;
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
    default:
        return text != NULL ? read_numbers(option, text, options, err)
                            : read_flag(option, options);
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
    if (options->sizes.count == 0 && options->lists.count == 0) {
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
    static const int of_explain_list[] = {OPTION_EXPLAIN, OPTION_LIST, 0};
    static const int of_tune[] = {
        OPTION_TUNE, OPTION_SIZES, OPTION_BLOCKS,   OPTION_WARM_UP,  OPTION_ITERATIONS,
        OPTION_TIME, OPTION_CHECK, OPTION_NO_CHECK, OPTION_PROGRESS, 0};
    bool lists = options->what == BENCH_EXPLAIN_LIST;
    bool explains = options->what == BENCH_EXPLAIN || lists;
    const int *may = lists ? of_explain_list : explains ? of_explain : of_tune;
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
        .warm_up = 5,
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
