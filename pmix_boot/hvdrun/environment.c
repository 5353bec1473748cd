/* SPDX-License-Identifier: Apache-2.0 */
/* A list that is searched from the front: environments are short. */
#include "pmix_boot/hvdrun/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find(const struct hvdrun_words *environment, const char *name)
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

const char *hvdrun_environment_get(const struct hvdrun_words *environment,
                                   const char *name)
{
    int i = find(environment, name);

    return i >= 0 ? environment->items[i] + strlen(name) + 1 : NULL;
}

int hvdrun_environment_set(struct hvdrun_words *environment, const char *name,
                           const char *value, bool overwrite, struct hvd_error *err)
{
    int i = find(environment, name);
    char *item;

    if (i < 0) {
        return hvdrun_words_add(environment, err, "%s=%s", name, value);
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

void hvdrun_environment_remove(struct hvdrun_words *environment, const char *prefix)
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
