/* SPDX-License-Identifier: Apache-2.0 */
/* The text after --hvd= as a record. */
#include "spank/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/plan.h"
#include "spank/words.h"

/* Slurm hands an option without argument on to other processes as this text. */
static const char slurm_null[] = "(null)";

/* None that a shell, a terminal or printf takes for more than itself. */
static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_=,:.-"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ/+@ ";

/* As much of a wrong word is repeated. */
static const size_t most_repeated = 40;

static const struct hvd_word words[] = {
    {"on", offsetof(struct hvd_options, is_on), 1},
    {"off", offsetof(struct hvd_options, is_on), 0},
    {"verbose", offsetof(struct hvd_options, is_verbose), 1},
    {"bind=socket", offsetof(struct hvd_options, bind), HVD_BIND_SOCKET},
    {"bind=cores", offsetof(struct hvd_options, bind), HVD_BIND_CORE},
    {"bind=none", offsetof(struct hvd_options, bind), HVD_BIND_NONE},
    {"gpus=all", offsetof(struct hvd_options, keep_gpus), 0},
    {"gpus=keep", offsetof(struct hvd_options, keep_gpus), 1},
    {"tasks=auto", offsetof(struct hvd_options, keep_tasks), 0},
    {"tasks=keep", offsetof(struct hvd_options, keep_tasks), 1},
    {"nic=auto", offsetof(struct hvd_options, keep_nic), 0},
    {"nic=off", offsetof(struct hvd_options, keep_nic), 1},
    {"timeline-ranks=all", offsetof(struct hvd_options, has_all_ranks), 1},
    {"timeline-ranks=0", offsetof(struct hvd_options, has_all_ranks), 0},
    {"elastic", offsetof(struct hvd_options, is_elastic), 1},
};

/* Keys that a number follows. Zero in the record means that it was not given. */
static const struct {
    const char *key;
    size_t field; /* offset of an int */
    int least;
    int added; /* to the number, so that the record holds 1 or more */
} numbers[] = {
    {"min=", offsetof(struct hvd_options, min_ranks), 1, 0},
    {"max=", offsetof(struct hvd_options, max_ranks), 1, 0},
    {"resets=", offsetof(struct hvd_options, resets), 0, 1},
};

/* More than any cluster has. */
static const int most_ranks = 1000000;

/* Keys that the name of a file follows. */
static const struct {
    const char *key;
    const char *shown;
    size_t field; /* offset of its text */
} files[] = {
    {"report=", "report[=FILE]", offsetof(struct hvd_options, report)},
    {"timeline=", "timeline=FILE", offsetof(struct hvd_options, timeline)},
    {"meet=", "meet=FILE", offsetof(struct hvd_options, meet)},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

void hvd_options_list(char text[HVD_OPTION_LIST_BYTES])
{
    size_t bytes = HVD_OPTION_LIST_BYTES;
    size_t used = hvd_words_list(words, LENGTH(words), text, bytes);

    for (size_t i = 0; i < LENGTH(numbers) && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, ", %sN", numbers[i].key);
    }
    for (size_t i = 0; i < LENGTH(files) && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, ", %s", files[i].shown);
    }
}

static int check_characters(const char *text, struct hvd_error *err)
{
    size_t length = strnlen(text, HVD_OPTION_TEXT_MAX + 1);
    size_t clean = strspn(text, allowed);
    char known[HVD_OPTION_LIST_BYTES];

    hvd_options_list(known);
    if (length > HVD_OPTION_TEXT_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: the text is longer than %d characters; known: %s",
                        HVD_OPTION_TEXT_MAX, known);
    }
    if (clean < length) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: character %zu (code 0x%02x) is not allowed; known: %s",
                        clean + 1, (unsigned char)text[clean], known);
    }
    return 0;
}

static int set_file(const char *key, const char *name, size_t length, char *field,
                    struct hvd_error *err)
{
    if (length == 0 || length > HVD_OPTION_FILE_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: %s needs the name of a file, at most %d characters", key,
                        HVD_OPTION_FILE_MAX);
    }
    memcpy(field, name, length);
    field[length] = '\0';
    return 0;
}

static int set_number(size_t i, const char *text, size_t length,
                      struct hvd_options *options, struct hvd_error *err)
{
    int number = 0;

    for (size_t k = 0; k < length && number <= most_ranks; k++) {
        bool is_digit = text[k] >= '0' && text[k] <= '9';

        number = is_digit ? 10 * number + (text[k] - '0') : most_ranks + 1;
    }
    if (length == 0 || number < numbers[i].least || number > most_ranks) {
        return hvd_fail(err, HVD_ERR_ARG, "--hvd: %s needs a number from %d to %d",
                        numbers[i].key, numbers[i].least, most_ranks);
    }
    number += numbers[i].added;
    memcpy((char *)options + numbers[i].field, &number, sizeof(number));
    return 0;
}

static int parse_word(const char *word, size_t length, struct hvd_options *options,
                      struct hvd_error *err)
{
    static const char report[] = "report";
    char known[HVD_OPTION_LIST_BYTES];

    for (size_t i = 0; i < LENGTH(files); i++) {
        size_t key = strlen(files[i].key);

        if (length >= key && memcmp(word, files[i].key, key) == 0) {
            return set_file(files[i].key, word + key, length - key,
                            (char *)options + files[i].field, err);
        }
    }
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        size_t key = strlen(numbers[i].key);

        if (length >= key && memcmp(word, numbers[i].key, key) == 0) {
            return set_number(i, word + key, length - key, options, err);
        }
    }
    if (length == strlen(report) && memcmp(word, report, length) == 0) {
        return set_file(report, "1", 1, options->report, err);
    }
    if (!hvd_word_apply(words, LENGTH(words), word, length, options)) {
        length = length < most_repeated ? length : most_repeated;
        hvd_options_list(known);
        return hvd_fail(err, HVD_ERR_ARG, "--hvd: unknown word \"%.*s\"; known: %s",
                        (int)length, word, known);
    }
    return 0;
}

static int parse_words(const char *text, struct hvd_options *options,
                       struct hvd_error *err)
{
    const char *word = text;

    while (word != NULL) {
        size_t length = strcspn(word, ",");
        int rc = parse_word(word, length, options, err);

        if (rc != 0) {
            return rc;
        }
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return 0;
}

/* What goes together, when all words are read. */
static int check_elastic(const struct hvd_options *options, struct hvd_error *err)
{
    bool has_rules = options->min_ranks > 0 || options->max_ranks > 0 ||
                     options->resets > 0 || options->meet[0] != '\0';

    if (has_rules && !options->is_elastic) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--hvd: min, max, resets and meet are of elastic jobs: "
                        "--hvd=elastic,min=N");
    }
    if (options->max_ranks > 0 && options->min_ranks > options->max_ranks) {
        return hvd_fail(err, HVD_ERR_ARG, "--hvd: min=%d is above max=%d",
                        options->min_ranks, options->max_ranks);
    }
    return 0;
}

int hvd_options_parse(const char *text, struct hvd_options *options,
                      struct hvd_error *err)
{
    struct hvd_options parsed = {.is_on = 1};
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
