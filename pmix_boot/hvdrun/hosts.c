/* SPDX-License-Identifier: Apache-2.0 */
/* Host lists and host files as horovodrun and mpirun write them. */
#include "pmix_boot/hvdrun/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads one word of `length` bytes: "host" or "host:4". */
static int parse_host(const char *word, size_t length, struct hvdrun_host *host,
                      struct hvd_error *err)
{
    const char *colon = memchr(word, ':', length);
    size_t name_length = colon != NULL ? (size_t)(colon - word) : length;
    char *end = NULL;
    long slots = colon != NULL ? strtol(colon + 1, &end, 10) : 1;

    if (name_length == 0 || name_length >= sizeof(host->name) || slots < 1 ||
        slots > HVDRUN_MOST_SLOTS || (colon != NULL && end != word + length)) {
        return hvd_fail(err, HVD_ERR_ARG, "host %.*s: expected HOST or HOST:RANKS",
                        (int)length, word);
    }
    memcpy(host->name, word, name_length);
    host->name[name_length] = '\0';
    host->slots = (int)slots;
    return 0;
}

static int count_words(const char *text)
{
    int count = 1;

    for (; *text != '\0'; text++) {
        count += *text == ',' ? 1 : 0;
    }
    return count;
}

int hvdrun_hosts_parse(const char *text, struct hvdrun_host **hosts,
                       struct hvd_error *err)
{
    int count = count_words(text);
    struct hvdrun_host *made = calloc((size_t)count, sizeof(*made));

    if (made == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d hosts", count);
    }
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(text, ",");
        int status = parse_host(text, length, &made[i], err);

        if (status < 0) {
            free(made);
            return status;
        }
        text += length + 1;
    }
    *hosts = made;
    return count;
}

/* Appends a line's host to out. */
static int read_line(char *line, FILE *out, bool *is_first)
{
    char *host;
    char *slots;
    char *save = NULL;

    line[strcspn(line, "#\n")] = '\0';
    host = strtok_r(line, " \t", &save);
    if (host == NULL) {
        return 0;
    }
    slots = strtok_r(NULL, " \t", &save);
    fprintf(out, "%s%s", *is_first ? "" : ",", host);
    *is_first = false;
    if (slots == NULL) {
        return 0;
    }
    if (strncmp(slots, "slots=", strlen("slots=")) != 0 ||
        strtok_r(NULL, " \t", &save) != NULL) {
        return HVD_ERR_ARG;
    }
    fprintf(out, ":%s", slots + strlen("slots="));
    return 0;
}

static int read_lines(const char *path, FILE *file, FILE *out, struct hvd_error *err)
{
    char *line = NULL;
    size_t room = 0;
    bool is_first = true;
    int status = 0;

    for (int number = 1; status == 0 && getline(&line, &room, file) >= 0; number++) {
        if (read_line(line, out, &is_first) < 0) {
            status = hvd_fail(err, HVD_ERR_ARG, "%s line %d: expected `HOST slots=N`",
                              path, number);
        }
    }
    free(line);
    if (status == 0 && is_first) {
        status = hvd_fail(err, HVD_ERR_ARG, "%s names no host", path);
    }
    return status;
}

int hvdrun_hostfile_read(const char *path, char **text, struct hvd_error *err)
{
    FILE *file = fopen(path, "re");
    char *made = NULL;
    size_t bytes = 0;
    FILE *out;
    int status;

    if (file == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "cannot read --hostfile %s: %m", path);
    }
    out = open_memstream(&made, &bytes);
    if (out == NULL) {
        fclose(file);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to read %s", path);
    }
    status = read_lines(path, file, out, err);
    fclose(file);
    fclose(out);
    if (status < 0) {
        free(made);
        return status;
    }
    *text = made;
    return 0;
}

bool hvdrun_host_is_local(const char *name, const char *own)
{
    size_t length = strcspn(name, ".");
    size_t own_length = strcspn(own, ".");
    bool is_same = length == own_length && strncasecmp(name, own, length) == 0;

    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0) {
        return true;
    }
    /* Either name may lack its domain. */
    return is_same &&
           (name[length] == '\0' || own[length] == '\0' || strcasecmp(name, own) == 0);
}
