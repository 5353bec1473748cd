/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/thresholds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Paths relative to the folder of this program: as installed, and in a build. */
static const char *const places[] = {HVD_INFO_THRESHOLDS_FILE, "thresholds.conf"};

static bool find_file(char *path, size_t size)
{
    char self[2048];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (length < 0) {
        return false;
    }
    self[length] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, size, "%s/%s", self, places[i]);
        if (access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_limit(const char *word, struct hvd_info_limit *limit)
{
    char *end;

    *limit = (struct hvd_info_limit){.value = NAN};
    if (strcmp(word, "-") == 0) {
        return true;
    }
    limit->value = strtod(word, &end);
    limit->is_relative = *end == 'x';
    return end != word && end[limit->is_relative] == '\0' && limit->value >= 0;
}

static int read_line(const char *path, int number, char *line,
                     struct hvd_info_thresholds *thresholds, struct hvd_error *err)
{
    struct hvd_info_threshold item;
    char yellow[32], red[32], rest[2];
    int words;

    line[strcspn(line, "#\n")] = '\0';
    words = sscanf(line, "%47s %31s %31s %1s", item.name, yellow, red, rest);
    if (words <= 0) {
        return 0;
    }
    if (words != 3 || !read_limit(yellow, &item.yellow) || !read_limit(red, &item.red) ||
        thresholds->count == HVD_INFO_THRESHOLDS) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%.200s line %d: expected NAME YELLOW RED, such as 'link 0.7x "
                        "0.3x', and at most %d lines, found '%.60s'",
                        path, number, HVD_INFO_THRESHOLDS, line);
    }
    thresholds->items[thresholds->count++] = item;
    return 0;
}

int hvd_info_thresholds_read(const char *file, struct hvd_info_thresholds *thresholds,
                             struct hvd_error *err)
{
    char path[4096], line[512];
    FILE *in;
    int status = 0;

    thresholds->count = 0;
    snprintf(path, sizeof(path), "%s", file != NULL ? file : "thresholds.conf");
    if (file == NULL && !find_file(path, sizeof(path))) {
        return 0;
    }
    in = fopen(path, "re");
    if (in == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read the thresholds in %.200s: %m",
                        path);
    }
    for (int number = 1; status == 0 && fgets(line, sizeof(line), in) != NULL; number++) {
        status = read_line(path, number, line, thresholds, err);
    }
    fclose(in);
    return status;
}

const struct hvd_info_threshold *
hvd_info_thresholds_find(const struct hvd_info_thresholds *thresholds, const char *name)
{
    for (int i = 0; i < thresholds->count; i++) {
        if (strcmp(thresholds->items[i].name, name) == 0) {
            return &thresholds->items[i];
        }
    }
    return NULL;
}

/* Returns the length of a pattern that is the beginning of the text, else -1. */
static int match_length(const char *pattern, const char *text)
{
    int length = 0;

    for (; pattern[length] != '\0'; length++) {
        if (text[length] == '\0' ||
            (pattern[length] != '_' && pattern[length] != text[length])) {
            return -1;
        }
    }
    return length;
}

const struct hvd_info_threshold *
hvd_info_thresholds_match(const struct hvd_info_thresholds *thresholds, const char *kind,
                          const char *text)
{
    const struct hvd_info_threshold *best = NULL;
    size_t bytes = strlen(kind);
    int most = -1;

    for (int i = 0; i < thresholds->count; i++) {
        const struct hvd_info_threshold *item = &thresholds->items[i];
        int length = strncmp(item->name, kind, bytes) == 0
                         ? match_length(item->name + bytes, text)
                         : -1;

        if (length > most) {
            most = length;
            best = item;
        }
    }
    return best;
}
