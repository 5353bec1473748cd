/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin wrote after the plugin's path in plugstack.conf, as a record. */
#include "spank/admin.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spank/words.h"

/* Slurm's own limit is 300 s; an hour is more than any start takes. */
enum {
    TIMEOUT_DEFAULT_S = 60,
    TIMEOUT_MAX_S = 3600
};

static const struct hvd_word words[] = {
    {"default=on", offsetof(struct hvd_admin, is_default_on), 1},
    {"default=off", offsetof(struct hvd_admin, is_default_on), 0},
    {"mpi=pmix", offsetof(struct hvd_admin, keep_mpi), 0},
    {"mpi=keep", offsetof(struct hvd_admin, keep_mpi), 1},
};

/* Words that any value follows. */
static const char timeout_key[] = "timeout=";
static const char python_key[] = "pythonpath=";
static const char topology_key[] = "topology=";

void hvd_admin_list(char text[HVD_ADMIN_LIST_BYTES])
{
    size_t used = hvd_words_list(words, sizeof(words) / sizeof(words[0]), text,
                                 HVD_ADMIN_LIST_BYTES);

    snprintf(text + used, HVD_ADMIN_LIST_BYTES - used, ", %sSECONDS, %sDIR, %sFILE",
             timeout_key, python_key, topology_key);
}

void hvd_admin_init(struct hvd_admin *admin, const char *python_dir)
{
    memset(admin, 0, sizeof(*admin));
    admin->timeout_s = TIMEOUT_DEFAULT_S;
    memcpy(admin->python_dir, python_dir,
           strnlen(python_dir, sizeof(admin->python_dir) - 1));
}

/* The value of word if it starts with key, else NULL. */
static const char *value_of(const char *word, const char *key)
{
    size_t length = strlen(key);

    return strncmp(word, key, length) == 0 ? word + length : NULL;
}

static int parse_timeout(const char *text, int *timeout_s, struct hvd_error *err)
{
    char *end = NULL;
    long seconds = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : 0;

    if (seconds < 1 || seconds > TIMEOUT_MAX_S || *end != '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "timeout=%.64s: expected seconds from 1 to %d",
                        text, TIMEOUT_MAX_S);
    }
    *timeout_s = (int)seconds;
    return 0;
}

/* Empty means none. A ':' would split the directory in two on PYTHONPATH. */
static int parse_path(const char *text, char path[PATH_MAX], struct hvd_error *err)
{
    size_t length = strnlen(text, PATH_MAX);

    if ((text[0] != '/' && text[0] != '\0') || length >= PATH_MAX ||
        strchr(text, ':') != NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "\"%.64s\": expected an absolute path without ':'", text);
    }
    memcpy(path, text, length + 1);
    return 0;
}

int hvd_admin_parse(const char *word, struct hvd_admin *admin, struct hvd_error *err)
{
    const char *timeout = value_of(word, timeout_key);
    const char *python_dir = value_of(word, python_key);
    char known[HVD_ADMIN_LIST_BYTES];
    const char *topology = value_of(word, topology_key);

    if (timeout != NULL) {
        return parse_timeout(timeout, &admin->timeout_s, err);
    }
    if (python_dir != NULL) {
        return parse_path(python_dir, admin->python_dir, err);
    }
    if (topology != NULL) {
        return parse_path(topology, admin->topology, err);
    }
    if (hvd_word_apply(words, sizeof(words) / sizeof(words[0]), word, strlen(word),
                       admin)) {
        return 0;
    }
    hvd_admin_list(known);
    return hvd_fail(err, HVD_ERR_ARG, "unknown word \"%.64s\"; known: %s", word, known);
}
