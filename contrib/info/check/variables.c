/* SPDX-License-Identifier: Apache-2.0 */
/* Names the variables of the plugin that an image, a hook or a script has changed. Their
 * values are not printed, because some are secret; those of UCX's variables are. */
#include "contrib/info/check/variables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/exported.h"

enum change {
    CHANGE_NONE,
    CHANGE_VALUE,
    CHANGE_REMOVED,
};

static enum change change_of(const struct hvd_exported *entry, hvd_info_lookup lookup)
{
    char name[256];
    const char *value;

    snprintf(name, sizeof(name), "%.*s", entry->length, entry->name);
    value = lookup(name);
    if (value == NULL) {
        return CHANGE_REMOVED;
    }
    return hvd_exported_matches(entry, value) ? CHANGE_NONE : CHANGE_VALUE;
}

/* Prints the variables that have changed in this way after the label; prints nothing if
 * there are none. Returns their number. */
static int print_names(const char *label, enum change change, hvd_info_lookup lookup,
                       FILE *out)
{
    const char *cursor = lookup(HVD_ENV_EXPORTED);
    struct hvd_exported entry;
    int count = 0;

    while (hvd_exported_next(&cursor, &entry)) {
        if (change_of(&entry, lookup) == change) {
            fprintf(out, "%s%.*s", count == 0 ? label : ",", entry.length, entry.name);
            count++;
        }
    }
    if (count > 0) {
        fputc('\n', out);
    }
    return count;
}

static int compare_texts(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

void hvd_info_ucx_print(FILE *out)
{
    static const char nic[] = HVD_ENV_UCX_NET_DEVICES "=";
    const char *found[128] = {NULL};
    size_t count = 0;

    for (char **at = environ; *at != NULL && count < sizeof(found) / sizeof(found[0]);
         at++) {
        if (strncmp(*at, "UCX_", 4) == 0 && strncmp(*at, nic, strlen(nic)) != 0) {
            found[count++] = *at;
        }
    }
    qsort(found, count, sizeof(found[0]), compare_texts);
    fputs("UCX settings:", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, " %.*s", (int)strcspn(found[i], "\n"), found[i]);
    }
    fputs(count > 0 ? "\n" : " none\n", out);
}

void hvd_info_variables_print(hvd_info_lookup lookup, FILE *out)
{
    int changes;

    if (lookup(HVD_ENV_EXPORTED) == NULL) {
        return;
    }
    changes = print_names("variables that hvd's plugin has set and that were changed: ",
                          CHANGE_VALUE, lookup, out);
    changes += print_names("variables that hvd's plugin has set and that were removed: ",
                           CHANGE_REMOVED, lookup, out);
    fputs(changes == 0
              ? "variables that hvd's plugin has set: unchanged\n"
              : "    An image, a container runtime or a script changes them between srun "
                "and this program.\n"
                "    Remove the line that does so. With pyxis, use "
                "--container-env=NAME,... "
                "with these names,\n"
                "    or ask the administrator to install hvd's hook for enroot: "
                "containers.md\n",
          out);
}
