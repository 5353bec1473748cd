/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces words that hvd-info --bug-report must not show. Takes the user's name from
 * variables, because a directory service might not answer. */
#include "contrib/info/bug_report/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/bug_report/allowed.h"
#include "gpu_binding/base/env.h"

enum {
    /* shorter values are not replaced: they may occur in any text */
    SHORTEST_VALUE = 8,
    NAME_BYTES = 256,
};

struct word {
    const char *text; /* borrowed */
    size_t bytes;
    bool is_whole; /* replaced only if it is not a part of a longer word */
    char name[NAME_BYTES + 16]; /* printed in its place */
};

struct hvd_info_words {
    int count;
    struct word items[];
};

/* Adds a word. The report shows the name in its place, such as "~"; for the value of a
 * variable, "(value of NAME)". */
static void add_word(struct hvd_info_words *words, const char *text, bool is_value,
                     const char *name)
{
    struct word *word = &words->items[words->count++];

    word->text = text;
    word->bytes = strlen(text);
    word->is_whole = !is_value;
    snprintf(word->name, sizeof(word->name), "%s%s%s", is_value ? "(value of " : "", name,
             is_value ? ")" : "");
}

/* Adds a value; of one like HOST:PORT:KEY, also the last part. Leaves out the name of
 * this program, which every report contains: a job may have it as its name. */
static void add_value(struct hvd_info_words *words, const char *name, const char *value)
{
    const char *key = strrchr(value, ':');

    if (strlen(value) >= SHORTEST_VALUE && strcmp(value, "hvd-info") != 0) {
        add_word(words, value, true, name);
    }
    if (key != NULL && strlen(key + 1) >= SHORTEST_VALUE) {
        add_word(words, key + 1, true, name);
    }
}

static bool is_user(const char *name)
{
    static const char *const names[] = {"USER", "LOGNAME", "SLURM_JOB_USER"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds at most two words. Keeps the user name root, which identifies nobody. */
static void add_variable(struct hvd_info_words *words, const char *variable)
{
    char name[NAME_BYTES];
    const char *equals = strchr(variable, '=');

    if (equals == NULL || (size_t)(equals - variable) >= sizeof(name)) {
        return;
    }
    const char *value = equals + 1;
    snprintf(name, sizeof(name), "%.*s", (int)(equals - variable), variable);
    if (strcmp(name, HVD_ENV_HOME) == 0) {
        if (strlen(value) > 1) {
            add_word(words, value, false, "~");
        }
    } else if (is_user(name)) {
        if (value[0] != '\0' && strcmp(value, "root") != 0) {
            add_word(words, value, false, "USER");
        }
    } else if (hvd_info_is_of_family(name) && !hvd_info_is_allowed(name)) {
        add_value(words, name, value);
    }
}

struct hvd_info_words *hvd_info_words_create(char *const *environment)
{
    struct hvd_info_words *words;
    size_t most = 0;

    while (environment[most] != NULL) {
        most++;
    }
    words = calloc(1, sizeof(*words) + 2 * most * sizeof(words->items[0]));
    for (size_t i = 0; words != NULL && i < most; i++) {
        add_variable(words, environment[i]);
    }
    return words;
}

static bool is_inside_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool is_here(const struct word *word, const char *start, const char *text)
{
    return strncmp(text, word->text, word->bytes) == 0 &&
           (!word->is_whole || ((text == start || !is_inside_word(text[-1])) &&
                                !is_inside_word(text[word->bytes])));
}

/* Returns the longest word that the text begins with, or NULL. */
static const struct word *find_word(const struct hvd_info_words *words, const char *start,
                                    const char *text)
{
    const struct word *found = NULL;

    for (int i = 0; i < words->count; i++) {
        const struct word *word = &words->items[i];

        if ((found == NULL || word->bytes > found->bytes) && is_here(word, start, text)) {
            found = word;
        }
    }
    return found;
}

void hvd_info_words_print(const struct hvd_info_words *words, const char *text, FILE *out)
{
    const char *start = text;

    while (*text != '\0') {
        const struct word *word = find_word(words, start, text);

        if (word != NULL) {
            fputs(word->name, out);
            text += word->bytes;
        } else {
            fputc(*text, out);
            text++;
        }
    }
}

void hvd_info_words_destroy(struct hvd_info_words *words)
{
    free(words);
}
