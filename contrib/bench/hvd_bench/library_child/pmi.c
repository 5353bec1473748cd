/* SPDX-License-Identifier: Apache-2.0 */
/* Puts and gets. */
#include "contrib/bench/hvd_bench/library_child/pmi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_ROOM = 256, /* these three are what MPICH's own launcher offers */
    KEY_ROOM = 64,
    VALUE_ROOM = 1024
};

struct entry {
    struct entry *next;
    char key[KEY_ROOM];
    char value[VALUE_ROOM];
};

struct bench_pmi {
    int size;
    int waiting; /* in the barrier */
    struct entry *entries;
};

/* The word behind " name=" in a line, or in front. */
static bool find(const char *line, const char *name, char *value, size_t room)
{
    size_t length = strlen(name);

    for (const char *at = line; at != NULL; at = strchr(at, ' ')) {
        at += at[0] == ' ';
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            snprintf(value, room, "%.*s", (int)strcspn(at + length + 1, " "),
                     at + length + 1);
            return true;
        }
    }
    return false;
}

/* A later value of a key hides the earlier one. */
static bool put(struct bench_pmi *pmi, const char *line)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL || !find(line, "key", entry->key, sizeof(entry->key)) ||
        !find(line, "value", entry->value, sizeof(entry->value))) {
        free(entry);
        return false;
    }
    entry->next = pmi->entries;
    pmi->entries = entry;
    return true;
}

static const char *get(const struct bench_pmi *pmi, const char *line)
{
    char key[KEY_ROOM];

    if (!find(line, "key", key, sizeof(key))) {
        return NULL;
    }
    for (const struct entry *entry = pmi->entries; entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, key) == 0) {
            return entry->value;
        }
    }
    return NULL;
}

/* Blocks of (first node, nodes, ranks of each), so that the library knows who shares memory. */
static int map_ranks(struct bench_pmi *pmi, const char *layout)
{
    char line[BENCH_PMI_LINE] = "key=PMI_process_mapping value=(vector";
    size_t used = strlen(line);
    const char *at = layout;
    char *end;

    for (int node = 0; at != NULL && used < sizeof(line) - KEY_ROOM; node++) {
        long ranks = strtol(at, &end, 10);

        if (end == at || strchr(",", end[0]) == NULL || ranks < 1 || ranks > 1 << 20) {
            return HVD_ERR_ARG;
        }
        used += (size_t)sprintf(line + used, ",(%d,1,%ld)", node, ranks);
        pmi->size += (int)ranks;
        at = end[0] == ',' ? end + 1 : NULL;
    }
    if (at != NULL || used - strlen("key=PMI_process_mapping value=") > VALUE_ROOM - 2) {
        return HVD_ERR_ARG;
    }
    strcat(line, ")");
    return put(pmi, line) ? 0 : HVD_ERR_NOMEM;
}

struct bench_pmi *bench_pmi_create(const char *layout)
{
    struct bench_pmi *pmi = calloc(1, sizeof(*pmi));

    if (pmi != NULL && map_ranks(pmi, layout) < 0) {
        bench_pmi_destroy(pmi);
        return NULL;
    }
    return pmi;
}

void bench_pmi_destroy(struct bench_pmi *pmi)
{
    while (pmi != NULL && pmi->entries != NULL) {
        struct entry *entry = pmi->entries;

        pmi->entries = entry->next;
        free(entry);
    }
    free(pmi);
}

int bench_pmi_size(const struct bench_pmi *pmi)
{
    return pmi->size;
}

static enum bench_pmi_to enter_barrier(struct bench_pmi *pmi, char *answer)
{
    pmi->waiting++;
    if (pmi->waiting < pmi->size) {
        return BENCH_PMI_NOBODY;
    }
    pmi->waiting = 0;
    strcpy(answer, "cmd=barrier_out rc=0");
    return BENCH_PMI_ALL;
}

/* What does not depend on what was said before. */
static void tell(const struct bench_pmi *pmi, const char *command, char *answer)
{
    if (strcmp(command, "init") == 0) {
        strcpy(answer, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    } else if (strcmp(command, "get_maxes") == 0) {
        sprintf(answer, "cmd=maxes rc=0 kvsname_max=%d keylen_max=%d vallen_max=%d",
                NAME_ROOM, KEY_ROOM, VALUE_ROOM);
    } else if (strcmp(command, "get_appnum") == 0) {
        strcpy(answer, "cmd=appnum rc=0 appnum=0");
    } else if (strcmp(command, "get_universe_size") == 0) {
        sprintf(answer, "cmd=universe_size rc=0 size=%d", pmi->size);
    } else if (strcmp(command, "get_my_kvsname") == 0) {
        strcpy(answer, "cmd=my_kvsname rc=0 kvsname=hvd-bench");
    } else if (strcmp(command, "finalize") == 0) {
        strcpy(answer, "cmd=finalize_ack rc=0");
    } else {
        sprintf(answer, "cmd=%.60s rc=-1 msg=unknown", command);
    }
}

enum bench_pmi_to bench_pmi_answer(struct bench_pmi *pmi, const char *line,
                                   char answer[BENCH_PMI_LINE])
{
    char command[KEY_ROOM] = "";

    find(line, "cmd", command, sizeof(command));
    if (strcmp(command, "barrier_in") == 0) {
        return enter_barrier(pmi, answer);
    }
    if (strcmp(command, "put") == 0) {
        strcpy(answer, put(pmi, line) ? "cmd=put_result rc=0 msg=success"
                                      : "cmd=put_result rc=-1 msg=no_room");
    } else if (strcmp(command, "get") == 0) {
        const char *value = get(pmi, line);

        sprintf(answer, "cmd=get_result rc=%d msg=%s value=%s", value != NULL ? 0 : -1,
                value != NULL ? "success" : "not_found", value != NULL ? value : "none");
    } else {
        tell(pmi, command, answer);
    }
    return BENCH_PMI_SENDER;
}
