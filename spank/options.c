/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text after --hvd= into a record. */
#include "spank/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/plan.h"

/* Slurm passes this text if the user gives --hvd without a value. */
static const char slurm_null[] = "(null)";

/* None of these characters is special to a shell, a terminal or printf. */
static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_=,:.-"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ/+@ ";

enum {
    RANKS_MAX = 1000000 /* more than any cluster has */
};

#define CHOICE(word, name, chosen)                                                       \
    .text = (word), .kind = HVD_SPANK_WORD_CHOICE,                                       \
    .field = offsetof(struct hvd_spank_options, name), .number = (chosen)
#define NUMBER(key, name, least)                                                         \
    .text = (key), .kind = HVD_SPANK_WORD_NUMBER, .value = "N",                          \
    .field = offsetof(struct hvd_spank_options, name), .number = (least),                \
    .most = RANKS_MAX
#define DIRECTORY(key, name)                                                             \
    .text = (key), .kind = HVD_SPANK_WORD_FILE, .value = "DIR",                          \
    .field = offsetof(struct hvd_spank_options, name)
#define TEXT(key, name, of_kind)                                                         \
    .text = (key), .kind = (of_kind), .value = "FILE",                                   \
    .field = offsetof(struct hvd_spank_options, name)

static const struct hvd_spank_word words[] = {
    {CHOICE("on", is_on, 1)},
    {CHOICE("off", is_on, 0),
     .help = "switch hvd on or off for this step, whatever the job has"},
    {CHOICE("verbose", is_verbose, 1), .help = "show where ranks are bound"},
    {CHOICE("bind=socket", bind, HVD_BIND_SOCKET), .also = "bind=sockets"},
    {CHOICE("bind=cores", bind, HVD_BIND_CORES), .also = "bind=core"},
    {CHOICE("bind=none", bind, HVD_BIND_NONE),
     .help = "bind a rank to its GPU's socket, to cores of its own, or not at all"},
    {CHOICE("gpus=all", keep_gpus, 0)},
    {CHOICE("gpus=keep", keep_gpus, 1),
     .help = "each rank sees all GPUs of its node, or those that Slurm chose"},
    {CHOICE("tasks=auto", tasks, HVD_SPANK_TASKS_AUTO)},
    {CHOICE("tasks=keep", tasks, HVD_SPANK_TASKS_KEEP)},
    {CHOICE("tasks=node", tasks, HVD_SPANK_TASKS_NODE),
     .help = "start one task per GPU, as many as Slurm chooses, or one per node, which "
             "starts the ranks there, as torchrun does"},
    {CHOICE("nic=auto", keep_nic, 0)},
    {CHOICE("nic=off", keep_nic, 1),
     .help = "use the network card next to the GPU, or let UCX choose"},
    {TEXT("report", report, HVD_SPANK_WORD_DEFAULT_FILE),
     .help = "print a straggler report at the end, or write it to FILE"},
    {TEXT("timeline", timeline, HVD_SPANK_WORD_FILE),
     .help = "write a timeline of all tensors to FILE"},
    {CHOICE("timeline-ranks=all", has_all_ranks, 1)},
    {CHOICE("timeline-ranks=0", has_all_ranks, 0),
     .help = "show all ranks in the timeline, or only rank 0"},
    {DIRECTORY("metrics", metrics),
     .help = "write metrics for Prometheus into DIR, a file for each node"},
    {DIRECTORY("nccl", nccl),
     .help = "NCCL writes its warnings to files in DIR, for hvd-info --nccl DIR"},
    {CHOICE("requeue", has_requeue, 1),
     .help = "requeue the job after SIGUSR1 has stopped it"},
    {CHOICE("elastic", is_elastic, 1), .help = "continue when a rank fails"},
    {NUMBER("min", min_ranks, 1)},
    {NUMBER("max", max_ranks, 1),
     .help = "elastic: the smallest and largest number of ranks"},
    {NUMBER("spares", spares, 1),
     .help = "elastic: N tasks wait until they replace failed ranks"},
    {NUMBER("resets", reset_limit, 0),
     .help = "elastic: how often the job may start again"},
    {TEXT("meet", meet, HVD_SPANK_WORD_FILE),
     .help = "elastic: steps that name the same FILE are one job"},
};

static const struct hvd_spank_word_table table = {"--hvd", words,
                                                  sizeof(words) / sizeof(words[0])};

void hvd_spank_options_list(char text[HVD_SPANK_OPTIONS_LIST_BYTES])
{
    hvd_spank_word_list(&table, text, HVD_SPANK_OPTIONS_LIST_BYTES);
}

void hvd_spank_options_help(char text[HVD_SPANK_OPTIONS_HELP_BYTES])
{
    int used = snprintf(text, HVD_SPANK_OPTIONS_HELP_BYTES,
                        "start the ranks of hvd (Horovod): one task per GPU, each bound "
                        "near its GPU; words: ");

    hvd_spank_word_help(&table, text + used, HVD_SPANK_OPTIONS_HELP_BYTES - (size_t)used);
}

static int check_characters(const char *text, struct hvd_error *err)
{
    size_t length = strnlen(text, HVD_SPANK_OPTIONS_TEXT_MAX + 1);
    size_t clean = strspn(text, allowed);
    char known[HVD_SPANK_OPTIONS_LIST_BYTES];

    hvd_spank_options_list(known);
    if (length > HVD_SPANK_OPTIONS_TEXT_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: the text is longer than %d characters; valid words: %s",
                        HVD_SPANK_OPTIONS_TEXT_MAX, known);
    }
    if (clean < length) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "--hvd: character %zu (code 0x%02x) is not allowed; valid words: %s",
            clean + 1, (unsigned char)text[clean], known);
    }
    return 0;
}

static int parse_words(const char *text, struct hvd_spank_options *options,
                       struct hvd_error *err)
{
    const char *word = text;

    while (word != NULL) {
        size_t length = strcspn(word, ",");
        int rc = hvd_spank_word_parse(&table, word, length, options, err);

        if (rc != 0) {
            return rc;
        }
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return 0;
}

/* Rejects words that have no meaning without `elastic`, and words that contradict
 * `elastic` or each other. */
static int check_elastic(const struct hvd_spank_options *options, struct hvd_error *err)
{
    bool has_rules = options->min_ranks > 0 || options->max_ranks > 0 ||
                     options->spares > 0 || options->reset_limit >= 0 ||
                     options->meet[0] != '\0';

    if (has_rules && !options->is_elastic) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: min, max, spares, resets and meet need elastic: "
                        "--hvd=elastic,min=N");
    }
    if (options->is_elastic && options->tasks == HVD_SPANK_TASKS_NODE) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: tasks=node does not work with elastic, which needs one "
                        "task for each rank: use torchrun --max-restarts instead");
    }
    if (options->max_ranks > 0 && options->min_ranks > options->max_ranks) {
        return hvd_fail(err, HVD_ERR_ARG, "--hvd: min=%d is above max=%d",
                        options->min_ranks, options->max_ranks);
    }
    if (options->max_ranks > 0 && options->spares > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: max=%d and spares=%d contradict each other: with spares, "
                        "all other tasks of the step train; leave out max",
                        options->max_ranks, options->spares);
    }
    return 0;
}

bool hvd_spank_options_know(const char *text, size_t length)
{
    return hvd_spank_word_is_known(&table, text, length);
}

const char *hvd_spank_options_spelling(const char *text, size_t length)
{
    return hvd_spank_word_spelling(&table, text, length);
}

int hvd_spank_options_add(const char *text, struct hvd_spank_options *options,
                          struct hvd_error *err)
{
    struct hvd_spank_options parsed = *options;
    bool is_bare = text == NULL || text[0] == '\0' || strcmp(text, slurm_null) == 0;

    if (!is_bare) {
        int rc = check_characters(text, err);

        rc = rc != 0 ? rc : parse_words(text, &parsed, err);
        rc = rc != 0 ? rc : check_elastic(&parsed, err);
        if (rc != 0) {
            return rc;
        }
    }
    *options = parsed;
    return 0;
}

int hvd_spank_options_parse(const char *text, struct hvd_spank_options *options,
                            struct hvd_error *err)
{
    struct hvd_spank_options parsed = {.is_on = 1, .reset_limit = -1};
    int rc = hvd_spank_options_add(text, &parsed, err);

    if (rc == 0) {
        *options = parsed;
    }
    return rc;
}
