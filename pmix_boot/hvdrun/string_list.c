/* SPDX-License-Identifier: Apache-2.0 */
/* The array grows by one string at a time, and look-ups are linear: lists are short. */
#include "pmix_boot/hvdrun/string_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hvdrun_string_list_add(struct hvdrun_string_list *words, struct hvd_error *err,
                           const char *format, ...)
{
    size_t room = (size_t)words->count + 2;
    char **items = realloc(words->items, room * sizeof(*items));
    va_list args;
    int length;

    if (items == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a list of words");
    }
    words->items = items;
    va_start(args, format);
    length = vasprintf(&items[words->count], format, args);
    va_end(args);
    items[words->count + (length < 0 ? 0 : 1)] = NULL;
    if (length < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a list of words");
    }
    words->count++;
    return 0;
}

int hvdrun_string_list_add_all(struct hvdrun_string_list *words, const char *const *items,
                               struct hvd_error *err)
{
    int status = 0;

    for (; *items != NULL && status == 0; items++) {
        status = hvdrun_string_list_add(words, err, "%s", *items);
    }
    return status;
}

void hvdrun_string_list_finish(struct hvdrun_string_list *words)
{
    for (int i = 0; i < words->count; i++) {
        free(words->items[i]);
    }
    free(words->items);
    *words = (struct hvdrun_string_list){0};
}

/* --- as an environment -------------------------------------------------------------- */

static int find_name(const struct hvdrun_string_list *environment, const char *name)
{
    size_t length = strlen(name);

    for (int i = 0; i < environment->count; i++) {
        if (strncmp(environment->items[i], name, length) == 0 &&
            environment->items[i][length] == '=') {
            return i;
        }
    }
    return -1;
}

const char *hvdrun_string_list_get_variable(const struct hvdrun_string_list *environment,
                                            const char *name)
{
    int i = find_name(environment, name);

    return i >= 0 ? environment->items[i] + strlen(name) + 1 : NULL;
}

int hvdrun_string_list_set_variable(struct hvdrun_string_list *environment,
                                    const char *name, const char *value, bool overwrite,
                                    struct hvd_error *err)
{
    int i = find_name(environment, name);
    char *item;

    if (i < 0) {
        return hvdrun_string_list_add(environment, err, "%s=%s", name, value);
    }
    if (!overwrite) {
        return 0;
    }
    if (asprintf(&item, "%s=%s", name, value) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", name);
    }
    free(environment->items[i]);
    environment->items[i] = item;
    return 0;
}

void hvdrun_string_list_remove_variables(struct hvdrun_string_list *environment,
                                         const char *prefix)
{
    int kept = 0;

    for (int i = 0; i < environment->count; i++) {
        if (strncmp(environment->items[i], prefix, strlen(prefix)) == 0) {
            free(environment->items[i]);
        } else {
            environment->items[kept++] = environment->items[i];
        }
    }
    environment->count = kept;
    if (environment->items != NULL) {
        environment->items[kept] = NULL;
    }
}
