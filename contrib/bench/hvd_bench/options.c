/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line. */
#include "contrib/bench/hvd_bench/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SECONDS = 100000
};

static const char default_sizes[] = "8,64,1K,16K,256K,4M,64M";
static const char tuned_sizes[] = "8,64,512,2K,8K,16K,32K,64K,128K,256K,1M,4M,16M,64M";

/* --- names ---------------------------------------------------------------------------- */

static const char *const op_names[] = {
    [HVD_SUM] = "sum", [HVD_AVERAGE] = "average", [HVD_MIN] = "min",
    [HVD_MAX] = "max", [HVD_PRODUCT] = "product",
};
static const char *const level_names[BENCH_LEVELS] = {"team", "runtime"};
static const char *const peer_names[BENCH_PEERS] = {
    [BENCH_MPI] = "mpi",         [BENCH_GLOO] = "gloo",
    [BENCH_LIMIT] = "limit",     [BENCH_UCX_LIMIT] = "ucx-limit",
    [BENCH_BUILTIN] = "builtin",
};

enum {
    OPS = sizeof(op_names) / sizeof(op_names[0])
};

_Static_assert((int)HVD_DTYPE_COUNT <= BENCH_MOST_NAMES &&
                   (int)BENCH_COLLECTIVES <= BENCH_MOST_NAMES,
               "a list has room for every value once");

const char *bench_op_name(enum hvd_op op)
{
    return (int)op < OPS && op_names[op] != NULL ? op_names[op] : "?";
}

const char *bench_peer_name(enum bench_peer peer)
{
    return peer_names[peer];
}

bool bench_list_has(const struct bench_list *list, int item)
{
    int i = 0;

    while (i < list->count && list->items[i] != item) {
        i++;
    }
    return i < list->count;
}

/* The index of a word of `length` characters, or -1. */
static int find_name(const char *const *names, int count, const char *word, size_t length)
{
    for (int i = 0; i < count; i++) {
        if (names[i] != NULL && strlen(names[i]) == length &&
            strncmp(names[i], word, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_op(const char *word, struct hvd_error *err)
{
    int op = find_name(op_names, OPS, strcmp(word, "avg") == 0 ? "average" : word,
                       strcmp(word, "avg") == 0 ? 7 : strlen(word));

    return op >= 0 ? op
                   : hvd_fail(err, HVD_ERR_ARG,
                              "--op: no operation \"%.100s\": sum, average, min, max, "
                              "product",
                              word);
}

static int find_dtype(const char *word, struct hvd_error *err)
{
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        if (strcmp(word, hvd_dtype_name((enum hvd_dtype)dtype)) == 0) {
            return dtype;
        }
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--dtype: no data type \"%.100s\": float32, float16, bfloat16, "
                    "float64, int32, ... as in hvd.h",
                    word);
}

static int find_level(const char *word, struct hvd_error *err)
{
    int level = find_name(level_names, BENCH_LEVELS, word, strlen(word));

    return level >= 0
               ? level
               : hvd_fail(err, HVD_ERR_ARG,
                          "--level: unknown level \"%.100s\"; known are team, runtime",
                          word);
}

/* NAME, or gloo=PROGRAM. */
static int find_peer(const char *word, struct hvd_error *err)
{
    size_t length = strcspn(word, "=");
    int peer = find_name(peer_names, BENCH_PEERS, word, length);

    if (peer < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--vs: unknown peer \"%.100s\"; known are mpi, gloo, limit, "
                        "ucx-limit, builtin; trainings of Horovod: --lab",
                        word);
    }
    if (word[length] == '=' && peer != BENCH_GLOO) {
        return hvd_fail(err, HVD_ERR_ARG, "--vs: expected %s, found \"%.200s\"",
                        peer_names[peer], word);
    }
    return word[length] != '=' || word[length + 1] != '\0'
               ? peer
               : hvd_fail(err, HVD_ERR_ARG,
                          "--vs: expected a path behind %s=, found nothing",
                          peer_names[peer]);
}

static int find_collective(const char *word, struct hvd_error *err)
{
    int collective = bench_collective_find(word);

    return collective >= 0
               ? collective
               : hvd_fail(
                     err, HVD_ERR_ARG,
                     "unknown collective \"%.100s\"; known are allreduce, allgather, "
                     "broadcast, alltoall, reducescatter, reduce, gather, scatter, "
                     "sendrecv, pingpong, barrier",
                     word);
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

enum kind {
    FLAG,
    TEXT, /* is kept */
    NAMES, /* a struct bench_list of what find returns */
    SIZES,
    BLOCKS,
    SECONDS
};

#define MEMBER(name) offsetof(struct bench_options, name)

static const struct option {
    const char *name;
    enum kind kind;
    size_t member; /* that keeps the value */
    unsigned modes;
    enum bench_what what; /* the mode that it chooses */
    int (*find)(const char *word, struct hvd_error *err);
} known[] = {
    {"sizes", SIZES, MEMBER(sizes), MEASURE | TUNE, 0, NULL},
    {"dtype", NAMES, MEMBER(dtypes), MEASURE | EXPLAIN, 0, find_dtype},
    {"op", NAMES, MEMBER(ops), MEASURE, 0, find_op},
    {"level", NAMES, MEMBER(levels), MEASURE, 0, find_level},
    {"vs", NAMES, MEMBER(peers), MEASURE, 0, find_peer},
    {"blocks", BLOCKS, MEMBER(blocks), MEASURE | TUNE, 0, NULL},
    {"time", SECONDS, MEMBER(seconds), MEASURE | TUNE, 0, NULL},
    {"json", TEXT, MEMBER(json), MEASURE, 0, NULL},
    {"plot", TEXT, MEMBER(plot), MEASURE, 0, NULL},
    {"layout", TEXT, MEMBER(layout), EXPLAIN, 0, NULL},
    {"tune", TEXT, MEMBER(tune), TUNE, BENCH_TUNE, NULL},
    {"list", FLAG, 0, LIST, BENCH_EXPLAIN_LIST, NULL},
    {"explain", FLAG, 0, EXPLAIN | LIST, BENCH_EXPLAIN, NULL},
    {"help", FLAG, 0, ANY, BENCH_HELP, NULL},
    {"version", FLAG, 0, ANY, BENCH_VERSION, NULL},
};

enum {
    KNOWN = sizeof(known) / sizeof(known[0])
};

static int add_item(struct bench_list *list, int item, const char *option,
                    const char *word, struct hvd_error *err)
{
    if (item < 0) {
        return item;
    }
    if (bench_list_has(list, item)) {
        return hvd_fail(err, HVD_ERR_ARG, "%s\"%.100s\" is named twice", option, word);
    }
    list->items[list->count++] = item;
    return 0;
}

/* Cuts a list of words in place. */
static int read_names(const struct option *option, char *text,
                      struct bench_options *options, struct hvd_error *err)
{
    struct bench_list *list = (void *)((char *)options + option->member);
    char *rest = NULL, prefix[32];
    int status = 0;

    snprintf(prefix, sizeof(prefix), "--%s: ", option->name);
    list->count = 0;
    for (char *word = strtok_r(text, ",", &rest); word != NULL && status == 0;
         word = strtok_r(NULL, ",", &rest)) {
        const char *equals = strchr(word, '=');

        status = add_item(list, option->find(word, err), prefix, word, err);
        if (status == 0 && list == &options->peers) {
            options->programs[list->count - 1] = equals != NULL ? equals + 1 : NULL;
        }
    }
    return status < 0 || list->count > 0
               ? status
               : hvd_fail(err, HVD_ERR_ARG, "--%s needs a name, see --help",
                          option->name);
}

/* Of --blocks or --time. */
static int read_number(enum kind kind, const char *text, struct bench_options *options,
                       struct hvd_error *err)
{
    char *end;
    double number = kind == BLOCKS ? (double)strtol(text, &end, 10) : strtod(text, &end);
    bool is_number = end != text && *end == '\0' && number > 0;

    if (kind == BLOCKS) {
        options->blocks = is_number && number <= BENCH_MOST_BLOCKS ? (int)number : 0;
        return options->blocks > 0
                   ? 0
                   : hvd_fail(err, HVD_ERR_ARG,
                              "--blocks takes a number from 1 to %d, not \"%.100s\"",
                              BENCH_MOST_BLOCKS, text);
    }
    options->seconds = number;
    return is_number && number <= MOST_SECONDS
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--time takes seconds, above 0 and at most %d, not \"%.100s\"",
                          MOST_SECONDS, text);
}

static int read_value(const struct option *option, char *text,
                      struct bench_options *options, struct hvd_error *err)
{
    struct hvd_error inner = {0};

    switch (option->kind) {
    case NAMES:
        return read_names(option, text, options, err);
    case SIZES:
        return bench_sizes_parse(text, &options->sizes, &inner) == 0
                   ? 0
                   : hvd_fail(err, HVD_ERR_ARG, "--sizes: %.400s", inner.text);
    case BLOCKS:
    case SECONDS:
        return read_number(option->kind, text, options, err);
    default:
        *(const char **)((char *)options + option->member) = text;
        return 0;
    }
}

/* Reads the option at argv[*at], "--name" or "--name=value"; the value may be the next word. */
static int read_option(char **argv, int *at, struct bench_options *options,
                       struct hvd_error *err)
{
    char *word = argv[*at], *value = strchr(word, '=');
    size_t length = strcspn(word, "=");
    const struct option *option = known;

    while (option < known + KNOWN &&
           (strncmp(word, "--", 2) != 0 || strlen(option->name) + 2 != length ||
            strncmp(option->name, word + 2, length - 2) != 0)) {
        option++;
    }
    if (option == known + KNOWN) {
        return hvd_fail(err, HVD_ERR_ARG, "unknown option %.100s, see --help", word);
    }
    options->given |= 1u << (option - known);
    if (option->what != BENCH_MEASURE &&
        !(option->what == BENCH_EXPLAIN && options->what == BENCH_EXPLAIN_LIST)) {
        options->what = option->what;
    }
    if (option->kind == FLAG) {
        return value == NULL
                   ? 0
                   : hvd_fail(err, HVD_ERR_ARG, "--%s takes no value, found %.100s",
                              option->name, word);
    }
    value = value != NULL ? value + 1 : argv[++*at];
    return value != NULL
               ? read_value(option, value, options, err)
               : hvd_fail(err, HVD_ERR_ARG, "%s needs a value, see --help", word);
}

/* A mode refuses the options that it would ignore. */
static int check_mode(const struct bench_options *options, struct hvd_error *err)
{
    static const char *const modes[] = {[BENCH_TUNE] = "tune",
                                        [BENCH_EXPLAIN] = "explain",
                                        [BENCH_EXPLAIN_LIST] = "explain --list"};

    for (int i = 0; i < KNOWN; i++) {
        if ((options->given & 1u << i) == 0 ||
            ((known[i].modes | ALONE) & 1u << options->what) != 0) {
            continue;
        }
        return options->what == BENCH_MEASURE
                   ? hvd_fail(err, HVD_ERR_ARG, "--%s is for --explain", known[i].name)
                   : hvd_fail(err, HVD_ERR_ARG, "--%s cannot be used with --%s",
                              modes[options->what], known[i].name);
    }
    return 0;
}

/* --- collectives ---------------------------------------------------------------------- */

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
    bool has_sizes = options->collectives.count == 0;
    int status = 0;

    for (int i = 0; i < options->collectives.count && status == 0; i++) {
        enum bench_collective collective =
            (enum bench_collective)options->collectives.items[i];

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
static int read_words(char **words, int count, struct bench_options *options,
                      struct hvd_error *err)
{
    bool explains = options->what == BENCH_EXPLAIN;
    int status = 0;

    if (options->what == BENCH_EXPLAIN_LIST && count > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain --list takes no word, found \"%.100s\"", words[0]);
    }
    if (explains && count != 2) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain takes a collective and a size, as --explain allreduce "
                        "64M, found %d word%s",
                        count, count == 1 ? "" : "s");
    }
    for (int i = 0; i < count && status == 0; i++) {
        status = explains && i == 1
                     ? bench_size_parse(words[i], &options->explain_bytes, err)
                     : add_item(&options->collectives, find_collective(words[i], err), "",
                                words[i], err);
    }
    return status < 0 ? status : check_collectives(options, err);
}

/* --- all together --------------------------------------------------------------------- */

static int complete(struct bench_options *options, struct hvd_error *err)
{
    static const struct bench_list usual = {1, {BENCH_ALLREDUCE}};
    static const struct bench_list tuned = {
        4, {BENCH_ALLREDUCE, BENCH_REDUCESCATTER, BENCH_ALLGATHER, BENCH_BROADCAST}};
    bool tunes = options->what == BENCH_TUNE;

    if (options->collectives.count == 0) {
        options->collectives = tunes ? tuned : usual;
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
    char *words[BENCH_MOST_NAMES];
    int count = 0, status = 0;

    *options = (struct bench_options){
        .dtypes = {1, {HVD_FLOAT32}},
        .ops = {1, {HVD_SUM}},
        .levels = {BENCH_LEVELS, {BENCH_TEAM, BENCH_RUNTIME}},
        .blocks = 11,
    };
    for (int at = 1; at < argc && status == 0; at++) {
        if (argv[at][0] == '-') {
            status = read_option(argv, &at, options, err);
        } else if (count < BENCH_MOST_NAMES) {
            words[count++] = argv[at];
        } else {
            status = hvd_fail(err, HVD_ERR_ARG, "%.100s: more than %d words", argv[at],
                              BENCH_MOST_NAMES);
        }
    }
    if (status == 0) {
        status = check_mode(options, err);
    }
    if (status == 0) {
        status = read_words(words, count, options, err);
    }
    return status < 0 ? status : complete(options, err);
}
