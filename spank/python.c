/* SPDX-License-Identifier: Apache-2.0 */
/* Puts hvd's front end, the package "horovod", on PYTHONPATH, and finds other packages of
 * that name. */
#include "spank/python.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char package[] = "horovod/__init__.py";

bool hvd_spank_python_folder(const char *plugin, const char *built_plugin,
                             const char *built_dir, char *dir, size_t bytes)
{
    size_t length = strlen(plugin);
    size_t built = strlen(built_plugin);
    size_t root = length > built ? length - built : 0;

    if (root > 0 && strcmp(plugin + root, built_plugin) != 0) {
        root = 0;
    }
    return snprintf(dir, bytes, "%.*s%s", (int)root, plugin, built_dir) < (int)bytes;
}

/* Returns the length of the entry at *cursor, without its ':', and moves *cursor to the
 * next entry; to NULL after the last. */
static size_t next_entry(const char **cursor, const char **entry)
{
    size_t length = strcspn(*cursor, ":");

    *entry = *cursor;
    *cursor = (*cursor)[length] == ':' ? *cursor + length + 1 : NULL;
    return length;
}

static bool is_entry(const char *path, const char *dir)
{
    const char *cursor = path;

    while (cursor != NULL) {
        const char *entry;
        size_t length = next_entry(&cursor, &entry);

        if (strlen(dir) == length && memcmp(entry, dir, length) == 0) {
            return true;
        }
    }
    return false;
}

bool hvd_spank_python_path(const char *path, const char *dir, char *joined, size_t bytes)
{
    bool is_empty = path == NULL || path[0] == '\0';
    size_t needed = (is_empty ? 0 : strlen(path) + 1) + strlen(dir) + 1;

    if (!is_empty && is_entry(path, dir)) {
        needed = strlen(path) + 1;
        dir = "";
    }
    if (needed > bytes) {
        return false;
    }
    snprintf(joined, bytes, "%s%s%s", is_empty ? "" : path,
             is_empty || dir[0] == '\0' ? "" : ":", dir);
    return true;
}

bool hvd_spank_python_path_without(const char *path, const char *dir, char *rest,
                                   size_t bytes)
{
    const char *cursor = path;
    size_t used = 0;

    if (strlen(path) >= bytes) {
        return false;
    }
    rest[0] = '\0';
    while (cursor != NULL) {
        const char *entry;
        size_t length = next_entry(&cursor, &entry);

        if (strlen(dir) != length || memcmp(entry, dir, length) != 0) {
            used += (size_t)snprintf(rest + used, bytes - used, "%s%.*s",
                                     used > 0 ? ":" : "", (int)length, entry);
        }
    }
    return true;
}

static bool has_package(const char *dir, size_t length)
{
    char file[PATH_MAX];
    int needed = snprintf(file, sizeof(file), "%.*s/%s", (int)length, dir, package);

    return length > 0 && needed < (int)sizeof(file) && access(file, R_OK) == 0;
}

static bool find_before(const char *path, const char *dir, char *other, size_t bytes)
{
    const char *cursor = path;

    while (cursor != NULL) {
        const char *entry;
        size_t length = next_entry(&cursor, &entry);

        if (strlen(dir) == length && memcmp(entry, dir, length) == 0) {
            return false;
        }
        if (has_package(entry, length)) {
            snprintf(other, bytes, "%.*s", (int)length, entry);
            return true;
        }
    }
    return false;
}

/* Looks for the package under all versions of Python that the environment has, because it
 * is not known here which one the user runs. */
static bool find_in_environment(const char *root, char *other, size_t bytes)
{
    char pattern[PATH_MAX];
    int needed = snprintf(pattern, sizeof(pattern), "%s/lib/python3*/site-packages/%s",
                          root, package);
    glob_t found;
    bool is_there;

    if (needed >= (int)sizeof(pattern)) {
        return false;
    }
    is_there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    if (is_there) {
        const char *file = found.gl_pathv[0];

        snprintf(other, bytes, "%.*s", (int)(strlen(file) - strlen(package) - 1), file);
    }
    globfree(&found);
    return is_there;
}

bool hvd_spank_python_find_other(const char *path, const char *dir, const char *env_root,
                                 char *other, size_t bytes, bool *wins)
{
    if (path != NULL && find_before(path, dir, other, bytes)) {
        *wins = true;
        return true;
    }
    *wins = false;
    return env_root != NULL && env_root[0] == '/' &&
           find_in_environment(env_root, other, bytes);
}
