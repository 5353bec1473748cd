/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/nccl/kinds.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/nccl_files.h"

/* NCCL writes "[TIME] HOST:PID:THREAD [DEVICE] FILE:LINE NCCL WARN TEXT"; the time since
 * 2.26, the brackets of the time only if its format has them. */
static const char mark[] = " NCCL WARN ";

/* NCCL appends six random characters to this name. */
static const char shm_name[] = "nccl-";

enum {
    SHM_NAME_BYTES = 11,
    MOST_OF_GROUP = 4, /* hexadecimal digits of an IPv6 address between colons */
};

/* --- names of files --- */

/* Reads a whole number as NCCL and hvd write it; -1: it is none. */
static long read_number(const char *text, const char *end)
{
    char *stop = NULL;
    long value;

    if (text == end || !isdigit((unsigned char)text[0]) ||
        (text[0] == '0' && end > text + 1)) {
        return -1;
    }
    errno = 0;
    value = strtol(text, &stop, 10);
    return errno != 0 || stop != end || value > INT_MAX ? -1 : value;
}

static const char host_letters[] = "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

bool hvd_info_nccl_file_parse(const char *name, struct hvd_info_nccl_file *file)
{
    const size_t prefix = strlen(HVD_NCCL_FILE_PREFIX);
    struct hvd_info_nccl_file found = {.rank = -1};
    const char *rank = name + prefix;
    const char *host;
    const char *pid;
    size_t length;

    if (strncmp(name, HVD_NCCL_FILE_PREFIX, prefix) != 0) {
        return false;
    }
    host = strchr(rank, '.');
    pid = strrchr(rank, '.');
    if (host == NULL || host == pid) {
        return false;
    }
    length = (size_t)(host - rank);
    if (length != strlen(HVD_NCCL_FILE_NO_RANK) ||
        strncmp(rank, HVD_NCCL_FILE_NO_RANK, length) != 0) {
        found.rank = (int)read_number(rank, host);
        if (found.rank < 0) {
            return false;
        }
    }
    host++;
    length = (size_t)(pid - host);
    found.pid = read_number(pid + 1, pid + strlen(pid));
    /* whoever may write to the folder chooses the names of its files */
    if (length == 0 || length >= sizeof(found.host) || found.pid < 0 ||
        strspn(host, host_letters) < length) {
        return false;
    }
    memcpy(found.host, host, length);
    *file = found;
    return true;
}

/* --- folding --- */

struct writer {
    char *text;
    size_t bytes;
    size_t used;
};

static void put(struct writer *out, char letter)
{
    if (out->used + 1 < out->bytes) {
        out->text[out->used++] = letter;
        out->text[out->used] = '\0';
    }
}

/* True if the text so far ends in # and one of the separators, such as "#." */
static bool continues(const struct writer *out, const char *separators)
{
    size_t end = out->used;

    while (end > 0 && strchr(separators, out->text[end - 1]) != NULL) {
        end--;
    }
    return end < out->used && end > 0 && out->text[end - 1] == '#';
}

/* Writes # for a number. Numbers joined by '.' or ':', as in addresses, become one. */
static void put_number(struct writer *out)
{
    if (continues(out, ".:")) {
        while (out->text[out->used - 1] != '#') {
            out->used--;
        }
        out->text[out->used] = '\0';
    } else if (out->used == 0 || out->text[out->used - 1] != '#') {
        put(out, '#');
    }
}

static bool is_of_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_' || letter == '-';
}

static int compare_host(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_host(const struct hvd_info_nccl_kinds *kinds, const char *word,
                    size_t length)
{
    char name[HVD_INFO_NCCL_HOST_BYTES];

    if (kinds->host_count == 0 || length >= sizeof(name)) {
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    return bsearch(name, kinds->hosts, (size_t)kinds->host_count, sizeof(kinds->hosts[0]),
                   compare_host) != NULL;
}

/* True for a number, also a hexadecimal one with a digit in it, such as a bus id. */
static bool is_number(const char *word, size_t length)
{
    bool has_digit = false;

    if (length > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
        return true;
    }
    for (size_t i = 0; i < length; i++) {
        if (!isxdigit((unsigned char)word[i])) {
            return false;
        }
        has_digit = has_digit || isdigit((unsigned char)word[i]);
    }
    return has_digit;
}

/* True for a part of an IPv6 address that has no digit, as in "#:ffff". */
static bool is_group(const struct writer *out, const char *word, size_t length)
{
    size_t digits = 0;

    while (digits < length && isxdigit((unsigned char)word[digits])) {
        digits++;
    }
    return digits == length && length <= MOST_OF_GROUP && continues(out, ":");
}

static void fold_word(const struct hvd_info_nccl_kinds *kinds, const char *word,
                      size_t length, struct writer *out)
{
    const size_t prefix = strlen(shm_name);

    if (is_number(word, length) || is_host(kinds, word, length) ||
        is_group(out, word, length)) {
        put_number(out);
        return;
    }
    if (length == SHM_NAME_BYTES && strncmp(word, shm_name, prefix) == 0) {
        for (size_t i = 0; i < prefix; i++) {
            put(out, word[i]);
        }
        put(out, '#');
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)word[i])) {
            put(out, word[i]);
        } else if (i == 0 || !isdigit((unsigned char)word[i - 1])) {
            put(out, '#');
        }
    }
}

static void fold(const struct hvd_info_nccl_kinds *kinds, const char *text,
                 char folded[HVD_INFO_NCCL_TEXT_BYTES])
{
    struct writer out = {folded, HVD_INFO_NCCL_TEXT_BYTES, 0};

    folded[0] = '\0';
    while (*text != '\0') {
        size_t length = 0;

        while (is_of_word(text[length])) {
            length++;
        }
        if (length > 0) {
            fold_word(kinds, text, length, &out);
            text += length;
        } else {
            put(&out, *text++);
        }
    }
}

/* --- lines --- */

/* Copies a text without control characters and spaces at its end. */
static void copy_clean(const char *from, size_t length, char *to, size_t bytes)
{
    size_t used = 0;

    for (; used < length && used + 1 < bytes && from[used] != '\0'; used++) {
        const unsigned char letter = (unsigned char)from[used];

        to[used] = letter < ' ' || letter == 0x7f ? ' ' : from[used];
    }
    while (used > 0 && to[used - 1] == ' ') {
        used--;
    }
    to[used] = '\0';
}

/* Takes the time from the beginning of a line; an empty text: there is none. Times of
 * NCCL's own format can be compared as texts; those of another format are left out. */
static void take_time(const char *line, char time[HVD_INFO_NCCL_TIME_BYTES])
{
    size_t length;

    time[0] = '\0';
    if (line[0] != '[') {
        return;
    }
    length = strspn(line + 1, "0123456789-:. ");
    if (length >= strlen("2026-01-31 12:00:00") && line[1 + length] == ']') {
        copy_clean(line + 1, length, time, HVD_INFO_NCCL_TIME_BYTES);
    }
}

static struct hvd_info_nccl_kind *find_kind(const struct hvd_info_nccl_kinds *kinds,
                                            const char *folded)
{
    for (int i = 0; i < kinds->count; i++) {
        if (strcmp(kinds->items[i].folded, folded) == 0) {
            return &kinds->items[i];
        }
    }
    return NULL;
}

/* A warning without a time is never the earlier one. */
static bool is_earlier(const char *time, const char *than)
{
    return time[0] != '\0' && (than[0] == '\0' || strcmp(time, than) < 0);
}

/* Adds an empty kind. Returns NULL if there is no memory. */
static struct hvd_info_nccl_kind *add_kind(struct hvd_info_nccl_kinds *kinds,
                                           const char folded[HVD_INFO_NCCL_TEXT_BYTES])
{
    const size_t count = (size_t)kinds->count;
    struct hvd_info_nccl_kind *grown = kinds->items;

    if (grown == NULL || (count & (count + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
        grown = realloc(grown, (2 * count + 1) * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
    }
    kinds->items = grown;
    kinds->count++;
    memset(&grown[count], 0, sizeof(grown[count]));
    memcpy(grown[count].folded, folded, sizeof(grown[count].folded));
    return &grown[count];
}

static int add_file(struct hvd_info_nccl_kind *kind, int file, struct hvd_error *err)
{
    int *grown;
    int room = 2 * kind->file_room + 8;

    if (kind->file_count > 0 && kind->files[kind->file_count - 1] == file) {
        return 0;
    }
    if (kind->file_count == kind->file_room) {
        grown = realloc(kind->files, (size_t)room * sizeof(*grown));
        if (grown == NULL) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d files", room);
        }
        kind->files = grown;
        kind->file_room = room;
    }
    kind->files[kind->file_count++] = file;
    return 0;
}

int hvd_info_nccl_kinds_add(struct hvd_info_nccl_kinds *kinds, int file, const char *line,
                            struct hvd_error *err)
{
    const char *warning = strstr(line, mark);
    char text[HVD_INFO_NCCL_TEXT_BYTES] = "";
    char folded[HVD_INFO_NCCL_TEXT_BYTES] = "";
    char time[HVD_INFO_NCCL_TIME_BYTES] = "";
    struct hvd_info_nccl_kind *kind;
    int status;

    if (warning == NULL) {
        return 0;
    }
    warning += strlen(mark);
    copy_clean(warning, strlen(warning), text, sizeof(text));
    take_time(line, time);
    fold(kinds, text, folded);
    kind = find_kind(kinds, folded);
    if (kind == NULL && kinds->count == HVD_INFO_NCCL_KINDS_MOST) {
        kinds->left_out++;
        return 0;
    }
    if (kind == NULL) {
        kind = add_kind(kinds, folded);
    }
    if (kind == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d warnings",
                        kinds->count + 1);
    }
    status = add_file(kind, file, err);
    if (status != 0) {
        return status;
    }
    if (kind->lines == 0 || is_earlier(time, kind->time)) {
        memcpy(kind->text, text, sizeof(kind->text));
        memcpy(kind->time, time, sizeof(kind->time));
        kind->first = file;
    }
    kind->lines++;
    return 0;
}

static int compare_kinds(const void *left, const void *right)
{
    const struct hvd_info_nccl_kind *a = left;
    const struct hvd_info_nccl_kind *b = right;

    if ((a->time[0] == '\0') != (b->time[0] == '\0')) {
        return a->time[0] == '\0' ? 1 : -1;
    }
    const int order = strcmp(a->time, b->time);

    return order != 0 ? order : strcmp(a->folded, b->folded);
}

void hvd_info_nccl_kinds_sort(struct hvd_info_nccl_kinds *kinds)
{
    if (kinds->count > 0) {
        qsort(kinds->items, (size_t)kinds->count, sizeof(kinds->items[0]), compare_kinds);
    }
}

void hvd_info_nccl_kinds_finish(struct hvd_info_nccl_kinds *kinds)
{
    for (int i = 0; i < kinds->count; i++) {
        free(kinds->items[i].files);
    }
    free(kinds->items);
    *kinds = (struct hvd_info_nccl_kinds){0};
}
