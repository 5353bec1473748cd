/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line. */
#include "contrib/bench/hvd_bench/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/bench/hvd_bench/formats.h"
#include "gpu_binding/base/number.h"

enum {
    MOST_SECONDS = 100000
};

static const char default_sizes[] = "8,64,1K,16K,256K,4M,64M";
static const char tuned_sizes[] = "8,64,512,2K,8K,16K,32K,64K,128K,256K,1M,4M,16M,64M";

/* --- names --- */

_Static_assert((int)HVD_DTYPE_COUNT <= BENCH_MOST_NAMES &&
                   (int)BENCH_COLLECTIVES <= BENCH_MOST_NAMES,
               "a list has room for every value once");

const char *bench_op_name(enum hvd_op op)
{
    static const char *const names[HVD_OP_COUNT] = {
        [HVD_SUM] = "sum", [HVD_AVERAGE] = "average", [HVD_MIN] = "min",
        [HVD_MAX] = "max", [HVD_PRODUCT] = "product",
    };

    return names[op] != NULL ? names[op] : "";
}

const char *bench_peer_name(enum bench_peer peer)
{
    static const char *const names[BENCH_PEERS] = {
        [BENCH_MPI] = "mpi",         [BENCH_GLOO] = "gloo",
        [BENCH_LIMIT] = "limit",     [BENCH_UCX_LIMIT] = "ucx-limit",
        [BENCH_BUILTIN] = "builtin",
    };

    return names[peer];
}

const char *bench_format_name(enum bench_format format)
{
    static const char *const names[BENCH_FORMATS] = {
        [BENCH_TABLE] = "table", [BENCH_OSU] = "osu", [BENCH_NCCL_TESTS] = "nccl-tests"};

    return names[format];
}

bool bench_list_has(const struct bench_list *list, int item)
{
    int i = 0;

    while (i < list->count && list->items[i] != item) {
        i++;
    }
    return i < list->count;
}

enum set {
    COLLECTIVE,
    DTYPE,
    OP,
    LEVEL,
    PEER,
    FORMAT
};

/* The sets of values that a list may have. The name "" hides a value from users. */
static const struct {
    const char *what; /* first words of the error about a word that is not in the set */
    int count;
} sets[] = {
    [COLLECTIVE] = {"unknown collective", BENCH_COLLECTIVES},
    [DTYPE] = {"--dtype: no data type", HVD_DTYPE_COUNT},
    [OP] = {"--op: no operation", HVD_OP_COUNT},
    [LEVEL] = {"--level: unknown level", BENCH_LEVELS},
    [PEER] = {"--vs: unknown peer", BENCH_PEERS},
    [FORMAT] = {"--format: unknown format", BENCH_FORMATS},
};

static const char *name_of(enum set set, int value)
{
    static const char *const levels[BENCH_LEVELS] = {"team", "runtime"};

    return set == COLLECTIVE ? bench_collective_name((enum bench_collective)value)
           : set == DTYPE    ? hvd_dtype_name((enum hvd_dtype)value)
           : set == OP       ? bench_op_name((enum hvd_op)value)
           : set == LEVEL    ? levels[value]
           : set == FORMAT   ? bench_format_name((enum bench_format)value)
                             : bench_peer_name((enum bench_peer)value);
}

/* Returns the value that a word names. For peers, the word may be NAME=PROGRAM. */
static int find_value(enum set set, const char *word, struct hvd_error *err)
{
    size_t length = set == PEER ? strcspn(word, "=") : strlen(word);
    char names[256] = "";
    size_t used = 0;

    if (set == OP && strcmp(word, "avg") == 0) {
        return HVD_AVERAGE;
    }
    for (int value = 0; value < sets[set].count; value++) {
        const char *name = name_of(set, value);

        if (length > 0 && strlen(name) == length && strncmp(name, word, length) == 0) {
            return value;
        }
        if (name[0] != '\0' && used < sizeof(names)) {
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     used > 0 ? ", " : "", name);
        }
    }
    return hvd_fail(err, HVD_ERR_ARG, "%s \"%.100s\"; known are %s%s", sets[set].what,
                    word, names,
                    set == PEER ? "; for trainings with Horovod use --lab" : "");
}

/* Checks NAME or gloo=PROGRAM. */
static int check_program(enum bench_peer peer, const char *word, struct hvd_error *err)
{
    const char *name = bench_peer_name(peer), *equals = strchr(word, '=');

    if (equals != NULL && peer != BENCH_GLOO) {
        return hvd_fail(err, HVD_ERR_ARG, "--vs: expected %s, found \"%.200s\"", name,
                        word);
    }
    return equals == NULL || equals[1] != '\0'
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--vs: expected a path after %s=, found nothing", name);
}

/* --- options --- */

/* The modes in which an option is allowed. */
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
    TEXT, /* an option whose text is kept */
    NAMES, /* an option with a list of values of a set: struct bench_list */
    PRINTED, /* --format */
    SIZES,
    BLOCKS,
    SECONDS
};

#define MEMBER(name) offsetof(struct bench_options, name)

static const struct option {
    const char *name;
    size_t member; /* the member that keeps the value */
    enum kind kind;
    unsigned modes;
    enum bench_what what; /* the mode that the option selects */
    enum set set;
} known[] = {
    {"sizes", MEMBER(sizes), SIZES, MEASURE | TUNE, 0, 0},
    {"dtype", MEMBER(dtypes), NAMES, MEASURE | EXPLAIN, 0, DTYPE},
    {"op", MEMBER(ops), NAMES, MEASURE, 0, OP},
    {"level", MEMBER(levels), NAMES, MEASURE, 0, LEVEL},
    {"vs", MEMBER(peers), NAMES, MEASURE, 0, PEER},
    {"blocks", MEMBER(blocks), BLOCKS, MEASURE | TUNE, 0, 0},
    {"time", MEMBER(seconds), SECONDS, MEASURE | TUNE, 0, 0},
    {"format", MEMBER(format), PRINTED, MEASURE, 0, FORMAT},
    {"json", MEMBER(json), TEXT, MEASURE, 0, 0},
    {"plot", MEMBER(plot), TEXT, MEASURE, 0, 0},
    {"layout", MEMBER(layout), TEXT, EXPLAIN, 0, 0},
    {"tune", MEMBER(tune), TEXT, TUNE, BENCH_TUNE, 0},
    {"list", 0, FLAG, LIST, BENCH_EXPLAIN_LIST, 0},
    {"explain", 0, FLAG, EXPLAIN | LIST, BENCH_EXPLAIN, 0},
    {"help", 0, FLAG, ANY, BENCH_HELP, 0},
    {"version", 0, FLAG, ANY, BENCH_VERSION, 0},
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

/* Reads a list of words, which it cuts in place. */
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

        status = add_item(list, find_value(option->set, word, err), prefix, word, err);
        if (status == 0 && option->set == PEER) {
            int last = list->count - 1;

            options->programs[last] = equals != NULL ? equals + 1 : NULL;
            status = check_program((enum bench_peer)list->items[last], word, err);
        }
    }
    return status < 0 || list->count > 0
               ? status
               : hvd_fail(err, HVD_ERR_ARG, "--%s needs a name, see --help",
                          option->name);
}

static int read_format(const char *text, struct bench_options *options,
                       struct hvd_error *err)
{
    int value = find_value(FORMAT, text, err);

    options->format = value < 0 ? BENCH_TABLE : (enum bench_format)value;
    return value < 0 ? value : 0;
}

/* Reads the number of --blocks or --time. */
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
    case PRINTED:
        return read_format(text, options, err);
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

/* Reads the option at argv[*at], "--name" or "--name=value"; the value may be the next
 * word. */
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

/* Completes the levels of hvd. A format other than the table has one column of times. */
static int complete_levels(struct bench_options *options, struct hvd_error *err)
{
    static const struct bench_list both = {BENCH_LEVELS, {BENCH_TEAM, BENCH_RUNTIME}};
    static const struct bench_list one = {1, {BENCH_RUNTIME}};
    bool has_one_column = options->format != BENCH_TABLE;

    if (options->levels.count == 0) {
        options->levels = has_one_column ? one : both;
    }
    return !has_one_column || options->levels.count + options->peers.count == 1
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--format %s has one column of times: expected one --level and "
                          "no --vs; the table has several",
                          bench_format_name(options->format));
}

/* Refuses options that the mode would ignore. */
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

/* --- collectives --- */

/* Checks a collective of --explain. Tables have no rows for the collectives with a root:
 * these use the rows of reducescatter and alltoall. */
static int check_explained(enum bench_collective collective, struct hvd_error *err)
{
    const char *name = bench_collective_name(collective);

    if (bench_collective_is_of_pairs(collective)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain: %s consists of messages, which have no schedule",
                        name);
    }
    if (collective < BENCH_REDUCE || collective > BENCH_SCATTER) {
        return 0;
    }
    return hvd_fail(
        err, HVD_ERR_ARG,
        "--explain: %s runs as %s in which only rank 0 has %s: explain that one", name,
        collective == BENCH_REDUCE ? "a reducescatter" : "an alltoall",
        collective == BENCH_SCATTER ? "input" : "output");
}

/* Checks a collective of --tune. An alltoall plans its second half while it runs, with
 * the job's algorithms, so its algorithms cannot be timed alone. */
static int check_tuned(enum bench_collective collective, struct hvd_error *err)
{
    return collective == BENCH_ALLTOALL || collective >= BENCH_REDUCE
               ? hvd_fail(err, HVD_ERR_ARG,
                          "--tune: the algorithms of %s cannot be timed alone",
                          bench_collective_name(collective))
               : 0;
}

static int check_formatted(enum bench_format format, enum bench_collective collective,
                           struct hvd_error *err)
{
    const char *reason = bench_format_lacks(format, collective);

    return reason == NULL ? 0
                          : hvd_fail(err, HVD_ERR_ARG, "--format %s: no rows for %s: %s",
                                     bench_format_name(format),
                                     bench_collective_name(collective), reason);
}

static int check_collectives(const struct bench_options *options, struct hvd_error *err)
{
    bool has_sizes = options->collectives.count == 0;
    int status = 0;

    for (int i = 0; i < options->collectives.count && status == 0; i++) {
        enum bench_collective collective =
            (enum bench_collective)options->collectives.items[i];

        has_sizes = has_sizes || collective != BENCH_BARRIER;
        if (options->format != BENCH_TABLE) {
            status = check_formatted(options->format, collective, err);
        } else if (options->what == BENCH_EXPLAIN) {
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

/* Reads the words that are not options: collectives, or after --explain a collective and
 * a size. */
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
                        count, hvd_number_plural(count));
    }
    for (int i = 0; i < count && status == 0; i++) {
        status = explains && i == 1
                     ? bench_size_parse(words[i], &options->explain_bytes, err)
                     : add_item(&options->collectives,
                                find_value(COLLECTIVE, words[i], err), "", words[i], err);
    }
    return status < 0 ? status : check_collectives(options, err);
}

/* --- all together --- */

static int complete_options(struct bench_options *options, struct hvd_error *err)
{
    static const struct bench_list usual = {1, {BENCH_ALLREDUCE}};
    static const struct bench_list tuned = {
        4, {BENCH_ALLREDUCE, BENCH_REDUCESCATTER, BENCH_ALLGATHER, BENCH_BROADCAST}};
    bool tunes = options->what == BENCH_TUNE;

    if (options->collectives.count == 0) {
        options->collectives = tunes ? tuned : usual;
    }
    if (options->seconds == 0) {
        /* --tune times many alternatives in several turns */
        options->seconds = tunes ? 0.15 : 0.2;
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
        status = complete_levels(options, err);
    }
    if (status == 0) {
        status = read_words(words, count, options, err);
    }
    return status < 0 ? status : complete_options(options, err);
}
