/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line. */
#include "contrib/bench/hvd_bench/options.h"

#include <stdlib.h>
#include <string.h>

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
const char *const bench_peer_names[] = {"mpi",       "gloo",    "limit",
                                        "ucx-limit", "builtin", NULL};

const char *bench_op_name(enum hvd_op op)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (op_names[i].op == op) {
            return op_names[i].name;
        }
    }
    return "?";
}

static int find_op(const char *name)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (strcmp(name, op_names[i].name) == 0) {
            return (int)op_names[i].op;
        }
    }
    return -1;
}

static int find_dtype(const char *name)
{
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        if (strcmp(name, hvd_dtype_name((enum hvd_dtype)dtype)) == 0) {
            return dtype;
        }
    }
    return -1;
}

int bench_peer_find(const char *text, struct hvd_error *err)
{
    size_t length = strcspn(text, "=");
    bool has_program = text[length] == '=';

    for (int i = 0; bench_peer_names[i] != NULL; i++) {
        const char *name = bench_peer_names[i];
        bool takes_program = strcmp(name, "gloo") == 0;

        if (strlen(name) != length || strncmp(name, text, length) != 0) {
            continue;
        }
        if (has_program && !takes_program) {
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
                    "ucx-limit, builtin; trainings of Horovod: --lab",
                    text);
}

/* --- values --------------------------------------------------------------------------- */

/* Cuts a list of words in place. */
static int split(const char *option, char *text, struct bench_names *names,
                 struct hvd_error *err)
{
    char *rest = NULL;

    names->count = 0;
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
    struct bench_names names;
    int status = split("dtype", text, &names, err);

    options->dtype_count = 0;
    for (int i = 0; status == 0 && i < names.count; i++) {
        int dtype = find_dtype(names.items[i]);

        if (dtype < 0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--dtype: no data type \"%.100s\": float32, float16, "
                            "bfloat16, float64, int32, ... as in hvd.h",
                            names.items[i]);
        }
        options->dtypes[options->dtype_count++] = (enum hvd_dtype)dtype;
    }
    return status;
}

static int read_ops(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_names names;
    int status = split("op", text, &names, err);

    options->op_count = 0;
    for (int i = 0; status == 0 && i < names.count; i++) {
        int op = find_op(names.items[i]);

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

static int read_sizes(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct hvd_error inner = {0};

    return bench_sizes_parse(text, &options->sizes, &inner) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG, "--sizes: %.400s", inner.text);
}

static int read_peers(char *text, struct bench_options *options, struct hvd_error *err)
{
    int status = split("vs", text, &options->peers, err);

    for (int i = 0; status == 0 && i < options->peers.count; i++) {
        int peer = bench_peer_find(options->peers.items[i], err);

        status = peer < 0 ? peer : 0;
    }
    return status;
}

static int read_levels(char *text, struct bench_options *options, struct hvd_error *err)
{
    struct bench_names names;
    int status = split("level", text, &names, err);

    options->has_all_levels = false;
    for (int i = 0; status == 0 && i < names.count; i++) {
        bool is_team = strcmp(names.items[i], "team") == 0;

        if (!is_team && strcmp(names.items[i], "runtime") != 0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--level: unknown level \"%.100s\"; known are team, runtime",
                            names.items[i]);
        }
        options->has_team_level |= is_team;
        options->has_runtime_level |= !is_team;
    }
    return status;
}

static int read_blocks(char *text, struct bench_options *options, struct hvd_error *err)
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

static int read_seconds(char *text, struct bench_options *options, struct hvd_error *err)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || *end != '\0' || !(number > 0 && number <= MOST_SECONDS)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--time takes seconds, above 0 and at most %d, not \"%.100s\"",
                        MOST_SECONDS, text);
    }
    options->seconds = number;
    return 0;
}

/* --- options -------------------------------------------------------------------------- */

/* The modes that an option goes with. */
enum {
    MEASURE = 1 << BENCH_MEASURE,
    EXPLAIN = 1 << BENCH_EXPLAIN,
    LIST = 1 << BENCH_EXPLAIN_LIST,
    TUNE = 1 << BENCH_TUNE,
    ALONE = 1 << BENCH_HELP | 1 << BENCH_VERSION,
    ANY = MEASURE | EXPLAIN | LIST | TUNE | ALONE
};

/* An option has a reader of its value, or is a text that is kept, or is a flag; the last two may
 * choose the mode. */
static const struct option {
    const char *name;
    int (*read)(char *text, struct bench_options *options, struct hvd_error *err);
    size_t text; /* offset of the member that keeps it */
    unsigned modes;
    enum bench_what what;
} known[] = {
    {"sizes", read_sizes, 0, MEASURE | TUNE, 0},
    {"dtype", read_dtypes, 0, MEASURE | EXPLAIN, 0},
    {"op", read_ops, 0, MEASURE, 0},
    {"level", read_levels, 0, MEASURE, 0},
    {"vs", read_peers, 0, MEASURE, 0},
    {"blocks", read_blocks, 0, MEASURE | TUNE, 0},
    {"time", read_seconds, 0, MEASURE | TUNE, 0},
    {"json", NULL, offsetof(struct bench_options, json), MEASURE, 0},
    {"plot", NULL, offsetof(struct bench_options, plot), MEASURE, 0},
    {"layout", NULL, offsetof(struct bench_options, layout), EXPLAIN, 0},
    {"tune", NULL, offsetof(struct bench_options, tune), TUNE, BENCH_TUNE},
    {"explain", NULL, 0, EXPLAIN | LIST, BENCH_EXPLAIN},
    {"list", NULL, 0, LIST, BENCH_EXPLAIN_LIST},
    {"help", NULL, 0, ANY, BENCH_HELP},
    {"version", NULL, 0, ANY, BENCH_VERSION},
};

enum {
    KNOWN = sizeof(known) / sizeof(known[0])
};

/* The index of the option in a word "--name" or "--name=value", or -1. */
static int find_option(const char *word)
{
    size_t length;

    if (strncmp(word, "--", 2) != 0) {
        return -1;
    }
    length = strcspn(word + 2, "=");
    for (int i = 0; i < KNOWN; i++) {
        if (strlen(known[i].name) == length &&
            strncmp(known[i].name, word + 2, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* Reads the option at argv[*at], and its value, which may be the next word. */
static int read_option(char **argv, int *at, struct bench_options *options,
                       struct hvd_error *err)
{
    char *word = argv[*at], *value = strchr(word, '=');
    int index = find_option(word);
    const struct option *option = &known[index < 0 ? 0 : index];

    if (index < 0) {
        return hvd_fail(err, HVD_ERR_ARG, "unknown option %.100s, see --help", word);
    }
    options->given |= 1u << index;
    options->what = option->what != BENCH_MEASURE ? option->what : options->what;
    if (option->read == NULL && option->text == 0) {
        return value == NULL
                   ? 0
                   : hvd_fail(err, HVD_ERR_ARG, "--%s takes no value, found %.100s",
                              option->name, word);
    }
    value = value != NULL ? value + 1 : argv[++*at];
    if (value == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s needs a value, see --help", word);
    }
    if (option->read != NULL) {
        return option->read(value, options, err);
    }
    *(const char **)((char *)options + option->text) = value;
    return 0;
}

/* A mode refuses the options that it would ignore. */
static int check_mode(const struct bench_options *options, struct hvd_error *err)
{
    for (int i = 0; i < KNOWN; i++) {
        if ((options->given & 1u << i) == 0 ||
            (known[i].modes & 1u << options->what) != 0 ||
            (ALONE & 1u << options->what) != 0) {
            continue;
        }
        return options->what == BENCH_MEASURE
                   ? hvd_fail(err, HVD_ERR_ARG, "--%s is for --explain", known[i].name)
                   : hvd_fail(err, HVD_ERR_ARG, "--%s cannot be used with --%s",
                              options->what == BENCH_TUNE      ? "tune"
                              : options->what == BENCH_EXPLAIN ? "explain"
                                                               : "explain --list",
                              known[i].name);
    }
    return 0;
}

/* --- collectives ---------------------------------------------------------------------- */

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

/* A table has no rows for the collectives with a root: they use those of reducescatter and
 * alltoall. */
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

static int check_collectives(const struct bench_options *options, struct hvd_error *err)
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
    return status < 0 || options->plot == NULL || has_sizes
               ? status
               : hvd_fail(err, HVD_ERR_ARG,
                          "--plot draws time against size: expected a collective "
                          "besides barrier");
}

/* COLLECTIVE..., or COLLECTIVE BYTES of --explain. */
static int read_words(const struct bench_names *words, struct bench_options *options,
                      struct hvd_error *err)
{
    bool explains = options->what == BENCH_EXPLAIN;
    int count = words->count, status = 0;

    if (options->what == BENCH_EXPLAIN_LIST && count > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain --list takes no word, found \"%.100s\"",
                        words->items[0]);
    }
    if (explains && count != 2) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain takes a collective and a size, as --explain allreduce "
                        "64M, found %d word%s",
                        count, count == 1 ? "" : "s");
    }
    for (int i = 0; i < count && status == 0; i++) {
        status = explains && i == 1
                     ? bench_size_parse(words->items[i], &options->explain_bytes, err)
                     : add_collective(words->items[i], options, err);
    }
    return status < 0 ? status : check_collectives(options, err);
}

/* --- all together --------------------------------------------------------------------- */

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
    if (options->sizes.count > 0) {
        return 0;
    }
    return bench_sizes_parse(tunes ? tuned_sizes : default_sizes, &options->sizes, err);
}

int bench_options_parse(int argc, char **argv, struct bench_options *options,
                        struct hvd_error *err)
{
    struct bench_names words = {0};
    int status = 0;

    *options = (struct bench_options){
        .dtype_count = 1,
        .dtypes = {HVD_FLOAT32},
        .op_count = 1,
        .ops = {HVD_SUM},
        .has_all_levels = true,
        .blocks = 11,
    };
    for (int at = 1; at < argc && status == 0; at++) {
        if (argv[at][0] == '-') {
            status = read_option(argv, &at, options, err);
        } else if (words.count < BENCH_MOST_NAMES) {
            words.items[words.count++] = argv[at];
        } else {
            status = hvd_fail(err, HVD_ERR_ARG, "%.100s: more than %d words", argv[at],
                              BENCH_MOST_NAMES);
        }
    }
    if (status == 0) {
        status = check_mode(options, err);
    }
    if (status == 0) {
        status = read_words(&words, options, err);
    }
    return status < 0 ? status : complete(options, err);
}
