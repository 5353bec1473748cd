/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a text by a table of words. */
#include "spank/word_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest part of a wrong word that a message repeats. */
enum {
    REPEATED_MAX = 40
};

/* --- parser --- */

static bool is_word(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

/* Returns the value of KEY=VALUE; NULL if text has another key or none. */
static const char *value_of(const char *key, const char *text, size_t length)
{
    size_t end = strlen(key);

    return length > end && memcmp(key, text, end) == 0 && text[end] == '='
               ? text + end + 1
               : NULL;
}

static int repeated(size_t length)
{
    return (int)(length < REPEATED_MAX ? length : REPEATED_MAX);
}

static int set_number(const struct hvd_spank_word_table *table,
                      const struct hvd_spank_word *word, const char *value, size_t length,
                      void *field, struct hvd_error *err)
{
    bool is_number = length > 0;
    int number = 0;

    for (size_t i = 0; i < length && is_number; i++) {
        is_number = value[i] >= '0' && value[i] <= '9';
        number = 10 * number + (value[i] - '0');
        is_number = is_number && number <= word->most;
    }
    if (!is_number || number < word->number) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: %s=%s needs a number from %d to %d, found \"%.*s\"",
                        table->origin, word->text, word->value, word->number, word->most,
                        repeated(length), value);
    }
    memcpy(field, &number, sizeof(number));
    return 0;
}

static void set_text(const char *value, size_t length, char *field)
{
    memcpy(field, value, length);
    field[length] = '\0';
}

static int set_file(const struct hvd_spank_word_table *table,
                    const struct hvd_spank_word *word, const char *value, size_t length,
                    void *field, struct hvd_error *err)
{
    if (length == 0 || length > HVD_SPANK_FILE_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: %s=%s needs a file name of 1 to %d characters, found %zu",
                        table->origin, word->text, word->value, HVD_SPANK_FILE_MAX,
                        length);
    }
    set_text(value, length, field);
    return 0;
}

/* A ':' would split the directory in two on PYTHONPATH. */
static int set_path(const struct hvd_spank_word_table *table,
                    const struct hvd_spank_word *word, const char *value, size_t length,
                    void *field, struct hvd_error *err)
{
    if (length >= PATH_MAX || (length > 0 && value[0] != '/') ||
        memchr(value, ':', length) != NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: %s=%s needs an absolute path without ':', found \"%.*s\"",
                        table->origin, word->text, word->value, repeated(length), value);
    }
    set_text(value, length, field);
    return 0;
}

static int set_list(const struct hvd_spank_word_table *table,
                    const struct hvd_spank_word *word, const char *value, size_t length,
                    void *field, struct hvd_error *err)
{
    if (length > HVD_SPANK_LIST_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: %s=%s takes at most %d characters, found %zu", table->origin,
                        word->text, word->value, HVD_SPANK_LIST_MAX, length);
    }
    set_text(value, length, field);
    return 0;
}

static int set_value(const struct hvd_spank_word_table *table,
                     const struct hvd_spank_word *word, const char *value, size_t length,
                     void *field, struct hvd_error *err)
{
    switch (word->kind) {
    case HVD_SPANK_WORD_NUMBER:
        return set_number(table, word, value, length, field, err);
    case HVD_SPANK_WORD_PATH:
        return set_path(table, word, value, length, field, err);
    case HVD_SPANK_WORD_LIST:
        return set_list(table, word, value, length, field, err);
    default:
        return set_file(table, word, value, length, field, err);
    }
}

int hvd_spank_word_parse(const struct hvd_spank_word_table *table, const char *text,
                         size_t length, void *record, struct hvd_error *err)
{
    char known[256];

    for (size_t i = 0; i < table->count; i++) {
        const struct hvd_spank_word *word = &table->words[i];
        char *field = (char *)record + word->field;
        const char *value = value_of(word->text, text, length);

        if (word->kind == HVD_SPANK_WORD_CHOICE) {
            if (is_word(word->text, text, length) ||
                (word->also != NULL && is_word(word->also, text, length))) {
                memcpy(field, &word->number, sizeof(word->number));
                return 0;
            }
        } else if (value != NULL) {
            return set_value(table, word, value, (size_t)(text + length - value), field,
                             err);
        } else if (word->kind == HVD_SPANK_WORD_DEFAULT_FILE &&
                   is_word(word->text, text, length)) {
            set_text("1", 1, field);
            return 0;
        }
    }
    hvd_spank_word_list(table, known, sizeof(known));
    return hvd_fail(err, HVD_ERR_ARG, "%s: unknown word \"%.*s\"; valid words: %s",
                    table->origin, repeated(length), text, known);
}

/* --- list and help --- */

struct buffer {
    char *text;
    size_t bytes;
    size_t used; /* always below bytes */
};

static void append_text(struct buffer *out, const char *format, ...) HVD_PRINTF(2, 3);

static void append_text(struct buffer *out, const char *format, ...)
{
    size_t left = out->bytes - out->used;
    size_t length;
    va_list arguments;

    va_start(arguments, format);
    length = (size_t)vsnprintf(out->text + out->used, left, format, arguments);
    va_end(arguments);
    out->used += length < left ? length : left - 1;
}

/* Returns the length of "key=" in a choice; 0 if it has no key. */
static size_t key_length(const char *text)
{
    const char *sign = strchr(text, '=');

    return sign != NULL ? (size_t)(sign - text) + 1 : 0;
}

bool hvd_spank_word_is_known(const struct hvd_spank_word_table *table, const char *text,
                             size_t length)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *word = table->words[i].text;
        const size_t key = key_length(word);

        if (is_word(word, text, length) ||
            (length > 0 && key == length + 1 && memcmp(word, text, length) == 0)) {
            return true;
        }
    }
    return false;
}

/* Writes the words; neighbouring choices with the same key become key=a|b. */
static void append_words(const struct hvd_spank_word *words, size_t count,
                         struct buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t key = key_length(words[i].text);
        bool is_more =
            i > 0 && key > 0 && strncmp(words[i - 1].text, words[i].text, key) == 0;

        append_text(out, "%s%s",
                    is_more ? "|"
                    : i > 0 ? ", "
                            : "",
                    words[i].text + (is_more ? key : 0));
        if (words[i].kind == HVD_SPANK_WORD_DEFAULT_FILE) {
            append_text(out, "[=%s]", words[i].value);
        } else if (words[i].kind != HVD_SPANK_WORD_CHOICE) {
            append_text(out, "=%s", words[i].value);
        }
    }
}

const char *hvd_spank_word_spelling(const struct hvd_spank_word_table *table,
                                    const char *text, size_t length)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *also = table->words[i].also;

        if (also != NULL && strlen(also) == length && memcmp(also, text, length) == 0) {
            return table->words[i].text;
        }
    }
    return NULL;
}

void hvd_spank_word_list(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes)
{
    struct buffer out = {text, bytes, 0};

    append_words(table->words, table->count, &out);
}

void hvd_spank_word_help(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes)
{
    struct buffer out = {text, bytes, 0};
    size_t first = 0;

    text[0] = '\0';
    for (size_t i = 0; i < table->count; i++) {
        if (table->words[i].help != NULL) {
            append_text(&out, "%s", first > 0 ? "; " : "");
            append_words(table->words + first, i + 1 - first, &out);
            append_text(&out, " (%s)", table->words[i].help);
            first = i + 1;
        }
    }
}
