/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a text is JSON. */
#include "tests/collectives/trace/json_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    const char *at;
    const char *end;
    int elements; /* elements of the outermost array */
    int depth;
};

static bool is_value(struct text *text);

static void skip_spaces(struct text *text)
{
    while (text->at < text->end && strchr(" \t\r\n", *text->at) != NULL &&
           *text->at != '\0') {
        text->at++;
    }
}

static bool take(struct text *text, const char *word)
{
    size_t bytes = strlen(word);

    if ((size_t)(text->end - text->at) < bytes || memcmp(text->at, word, bytes) != 0) {
        return false;
    }
    text->at += bytes;
    return true;
}

static bool is_escape(struct text *text)
{
    if (text->end - text->at < 2) {
        return false;
    }
    if (text->at[1] != 'u') {
        text->at += 2;
        return strchr("\"\\/bfnrt", text->at[-1]) != NULL && text->at[-1] != '\0';
    }
    if (text->end - text->at < 6) {
        return false;
    }
    for (int i = 2; i < 6; i++) {
        if (!isxdigit((unsigned char)text->at[i])) {
            return false;
        }
    }
    text->at += 6;
    return true;
}

/* Reads a character of UTF-8; fails if it is not in its shortest form. */
static bool is_character(struct text *text)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*text->at;
    int bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
    unsigned value = bytes == 1 ? first : first & (0x7fu >> bytes);

    if ((bytes == 4 && first >> 3 != 30) || text->end - text->at < bytes) {
        return false;
    }
    for (int i = 1; i < bytes; i++) {
        unsigned char next = (unsigned char)text->at[i];

        if (next >> 6 != 2) {
            return false;
        }
        value = value << 6 | (next & 0x3f);
    }
    text->at += bytes;
    return value >= least[bytes] && value >= 0x20 && value <= 0x10ffff &&
           (value < 0xd800 || value > 0xdfff);
}

static bool is_string(struct text *text)
{
    if (!take(text, "\"")) {
        return false;
    }
    while (text->at < text->end && *text->at != '"') {
        if (!(*text->at == '\\' ? is_escape(text) : is_character(text))) {
            return false;
        }
    }
    return take(text, "\"");
}

/* Accepts integers only: timelines contain no other numbers. */
static bool is_number(struct text *text)
{
    const char *first;

    take(text, "-");
    first = text->at;
    while (text->at < text->end && isdigit((unsigned char)*text->at)) {
        text->at++;
    }
    return text->at > first && (*first != '0' || text->at == first + 1);
}

static bool is_member(struct text *text, bool has_name)
{
    if (has_name) {
        skip_spaces(text);
        if (!is_string(text)) {
            return false;
        }
        skip_spaces(text);
        if (!take(text, ":")) {
            return false;
        }
    }
    return is_value(text);
}

static bool is_list(struct text *text, const char *close)
{
    bool has_name = close[0] == '}';

    skip_spaces(text);
    if (take(text, close)) {
        return true;
    }
    text->depth++;
    do {
        if (!is_member(text, has_name)) {
            return false;
        }
        text->elements += text->depth == 1 ? 1 : 0;
        skip_spaces(text);
    } while (take(text, ","));
    text->depth--;
    return take(text, close);
}

static bool is_value(struct text *text)
{
    skip_spaces(text);
    if (take(text, "[")) {
        return is_list(text, "]");
    }
    if (take(text, "{")) {
        return is_list(text, "}");
    }
    if (text->at < text->end && *text->at == '"') {
        return is_string(text);
    }
    return take(text, "true") || take(text, "false") || take(text, "null") ||
           is_number(text);
}

static bool check(struct text *text)
{
    bool is_good = is_value(text);

    skip_spaces(text);
    return is_good && text->at == text->end;
}

bool json_is_good(const char *text, size_t bytes)
{
    struct text all = {.at = text, .end = text + bytes};

    return check(&all);
}

int json_count(const char *text, size_t bytes)
{
    struct text all = {.at = text, .end = text + bytes};

    skip_spaces(&all);
    if (all.at == all.end || *all.at != '[' || !check(&all)) {
        return -1;
    }
    return all.elements;
}

char *json_read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "r");
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);

    *bytes = 0;
    if (file == NULL) {
        free(text);
        return NULL;
    }
    while (!feof(file) && !ferror(file)) {
        if (*bytes + 1 == capacity) {
            capacity *= 2;
            text = realloc(text, capacity);
        }
        *bytes += fread(text + *bytes, 1, capacity - *bytes - 1, file);
    }
    fclose(file);
    text[*bytes] = '\0';
    return text;
}

int json_count_file(const char *path)
{
    size_t bytes;
    char *text = json_read_file(path, &bytes);
    int count = text != NULL ? json_count(text, bytes) : -1;

    free(text);
    return count;
}
