/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/batch_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list that is being read. */
struct host_list {
    struct hvdrun_host *hosts;
    int count;
    int room;
};

static const char *form_name(enum hvdrun_batch_form form)
{
    switch (form) {
    case HVDRUN_HOST_PER_SLOT:
        return "a host name";
    case HVDRUN_HOST_AND_SLOTS:
        return "a host name and its number of slots";
    case HVDRUN_HOST_SLOT_PAIRS:
        break;
    }
    return "host names, each followed by its number of slots";
}

/* Returns the host of this name, a new one if there is none; NULL if out of memory. */
static struct hvdrun_host *find_host(struct host_list *list, const char *name)
{
    struct hvdrun_host *host;

    for (int i = list->count - 1; i >= 0; i--) {
        if (strcmp(list->hosts[i].name, name) == 0) {
            return &list->hosts[i];
        }
    }
    if (list->count == list->room) {
        int room = list->room > 0 ? 2 * list->room : 16;
        struct hvdrun_host *more = realloc(list->hosts, (size_t)room * sizeof(*more));

        if (more == NULL) {
            return NULL;
        }
        list->hosts = more;
        list->room = room;
    }
    host = &list->hosts[list->count++];
    snprintf(host->name, sizeof(host->name), "%s", name);
    host->slots = 0;
    return host;
}

/* Returns HVD_ERR_ARG if the words are not a host and a number of slots. */
static int add_slots(struct host_list *list, const char *name, const char *number)
{
    struct hvdrun_host *host;
    char *end = NULL;
    long slots = number != NULL ? strtol(number, &end, 10) : 0;

    if (number == NULL || end == number || *end != '\0' || slots < 1 ||
        slots > HVDRUN_MOST_SLOTS || strpbrk(name, ":,") != NULL ||
        strlen(name) >= sizeof(((struct hvdrun_host *)NULL)->name)) {
        return HVD_ERR_ARG;
    }
    host = find_host(list, name);
    if (host == NULL) {
        return HVD_ERR_NOMEM;
    }
    host->slots += (int)slots;
    return host->slots <= HVDRUN_MOST_SLOTS ? 0 : HVD_ERR_ARG;
}

/* Changes the line. */
static int read_line(char *line, enum hvdrun_batch_form form, struct host_list *list)
{
    static const char blanks[] = " \t\r";
    char *save = NULL;
    char *name = strtok_r(line, blanks, &save);
    int status = 0;

    while (name != NULL && status == 0) {
        const char *number =
            form == HVDRUN_HOST_PER_SLOT ? "1" : strtok_r(NULL, blanks, &save);

        status = add_slots(list, name, number);
        name = form == HVDRUN_HOST_AND_SLOTS ? NULL : strtok_r(NULL, blanks, &save);
        if (form == HVDRUN_HOST_PER_SLOT && name != NULL) {
            return HVD_ERR_ARG;
        }
    }
    return status;
}

static int read_lines(const char *source, char *text, enum hvdrun_batch_form form,
                      struct host_list *list, struct hvd_error *err)
{
    int number = 1;

    for (char *line = text; line != NULL; number++) {
        size_t length = strcspn(line, "\n");
        char *next = line[length] == '\n' ? line + length + 1 : NULL;
        char found[64];
        int status;

        line[length] = '\0';
        snprintf(found, sizeof(found), "%s", line);
        status = read_line(line, form, list);
        if (status == HVD_ERR_NOMEM) {
            return hvd_fail(err, status, "no memory for the hosts of %s", source);
        }
        if (status < 0) {
            return hvd_fail(err, HVD_ERR_ARG, "%s line %d: expected %s, found '%s'",
                            source, number, form_name(form), found);
        }
        line = next;
    }
    return 0;
}

int hvdrun_batch_hosts_parse(const char *source, const char *text,
                             enum hvdrun_batch_form form, struct hvdrun_host **hosts,
                             struct hvd_error *err)
{
    struct host_list list = {0};
    char *copy = strdup(text);
    int status;

    if (copy == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the hosts of %s", source);
    }
    status = read_lines(source, copy, form, &list, err);
    free(copy);
    if (status < 0) {
        free(list.hosts);
        return status;
    }
    if (list.hosts == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s names no host: expected %s", source,
                        form_name(form));
    }
    *hosts = list.hosts;
    return list.count;
}
