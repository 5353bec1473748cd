/* SPDX-License-Identifier: Apache-2.0 */
/* Counts processes that the kernel killed because memory ran out. */
#include "pmix_boot/hvdrun/memory_kills.h"

#include <limits.h>
#include <string.h>

/* Returns whether a list such as "cpu,memory" has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Lines of /proc/PID/cgroup are "4:memory:/path" for cgroups of version 1 and "0::/path"
 * for version 2. If both are there, the kernel counts memory in version 1. */
bool hvdrun_memory_kills_file(FILE *cgroups, char *path, size_t bytes)
{
    char line[PATH_MAX];
    bool is_found = false;

    while (fgets(line, sizeof(line), cgroups) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (has_word(controllers + 1, "memory")) {
            snprintf(path, bytes, "/sys/fs/cgroup/memory%s/memory.oom_control", group);
            return true;
        }
        if (controllers[1] == '\0') {
            snprintf(path, bytes, "/sys/fs/cgroup%s/memory.events", group);
            is_found = true;
        }
    }
    return is_found;
}

long hvdrun_memory_kills_read(FILE *events)
{
    char line[128];
    long kills = -1;

    while (kills < 0 && fgets(line, sizeof(line), events) != NULL) {
        if (sscanf(line, "oom_kill %ld", &kills) != 1) {
            kills = -1;
        }
    }
    return kills;
}

long hvdrun_memory_kills(void)
{
    char path[PATH_MAX + 64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool is_found = file != NULL && hvdrun_memory_kills_file(file, path, sizeof(path));
    long kills = -1;

    if (file != NULL) {
        fclose(file);
    }
    file = is_found ? fopen(path, "re") : NULL;
    if (file != NULL) {
        kills = hvdrun_memory_kills_read(file);
        fclose(file);
    }
    return kills;
}
