/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of NCCL's log files. NCCL reads them once, at its first call. */
#include "gpu_binding/base/nccl_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* NCCL replaces %h by the name of the host and %p by the process, and %% by %. */
#define OF_PROCESS ".%h.%p"

#define INSPECTOR "libnccl-profiler-inspector.so"

/* How often the Inspector writes what it has recorded. By default it writes only when a
 * communicator is destroyed, which does not happen if the job fails. */
#define INSPECTOR_MICROSECONDS "1000000"

enum {
    /* room for each % twice, and for the name of a file */
    VALUE_BYTES = 2 * PATH_MAX + 64,
    /* NCCL cuts a longer name of a plugin */
    PLUGIN_MOST = 254,
    LIBRARY_PATH_BYTES = 65536,
};

/* A part of the texts about calls of NCCL that failed (hvd_nccl_fail), but not of those
 * about NCCL that cannot be used. */
static const char nccl_failed[] = "(NCCL ";

/* --- the directory --- */

static int fail_directory(const char *path, const char *what, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_SYS,
                    "cannot %s %.200s for NCCL's messages: %m; choose another directory "
                    "for nccl= or HVD_NCCL_FILES",
                    what, path);
}

static int make_absolute(const char *directory, char path[PATH_MAX],
                         struct hvd_error *err)
{
    char here[PATH_MAX] = "";
    int length;

    if (directory[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        return fail_directory(directory, "find", err);
    }
    length =
        snprintf(path, PATH_MAX, "%s%s%s", here, here[0] != '\0' ? "/" : "", directory);
    /* the rest is for the names of files */
    if (length >= PATH_MAX - NAME_MAX) {
        errno = ENAMETOOLONG;
        return fail_directory(directory, "use", err);
    }
    while (length > 1 && path[length - 1] == '/') {
        path[--length] = '\0';
    }
    return 0;
}

/* Several ranks may make the directory at the same time. */
static int make_directory(char *path, struct hvd_error *err)
{
    struct stat found;

    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return fail_directory(path, "make", err);
    }
    if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        return fail_directory(path, "write to", err);
    }
    return access(path, W_OK | X_OK) == 0 ? 0 : fail_directory(path, "write to", err);
}

/* --- values --- */

/* Writes "DIRECTORY/nccl." as NCCL reads it, each % doubled. */
static size_t write_beginning(const char *directory, char value[VALUE_BYTES])
{
    size_t used = 0;

    for (const char *from = directory; *from != '\0' && used < 2 * PATH_MAX - 2; from++) {
        value[used++] = *from;
        if (*from == '%') {
            value[used++] = '%';
        }
    }
    return used + (size_t)snprintf(value + used, VALUE_BYTES - used, "/%s",
                                   HVD_NCCL_FILE_PREFIX);
}

static void write_file(const char *directory, int rank, char value[VALUE_BYTES])
{
    const size_t used = write_beginning(directory, value);

    if (rank >= 0) {
        snprintf(value + used, VALUE_BYTES - used, "%d%s", rank, OF_PROCESS);
    } else {
        snprintf(value + used, VALUE_BYTES - used, "%s%s", HVD_NCCL_FILE_NO_RANK,
                 OF_PROCESS);
    }
}

/* True if hvd has made this value of NCCL_DEBUG_FILE, for any rank and this directory. */
static bool is_made_for(const char *directory, const char *value)
{
    char beginning[VALUE_BYTES];
    const size_t used = write_beginning(directory, beginning);
    const char *rest = value + used;

    if (directory[0] == '\0' || strncmp(value, beginning, used) != 0) {
        return false;
    }
    rest += strspn(rest, "0123456789" HVD_NCCL_FILE_NO_RANK);
    return rest > value + used && strcmp(rest, OF_PROCESS) == 0;
}

static void name_dump(const char *directory, char value[VALUE_BYTES])
{
    snprintf(value, VALUE_BYTES, "%s/inspector", directory);
}

/* --- the environment --- */

static int set_one(const struct hvd_nccl_environment *environment, const char *name,
                   const char *value, struct hvd_error *err)
{
    return environment->set(environment->context, name, value) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for the variable %s", name);
}

static int set_default(const struct hvd_nccl_environment *environment, const char *name,
                       const char *value, struct hvd_error *err)
{
    char found[2];

    return environment->get(environment->context, name, found, sizeof(found))
               ? 0
               : set_one(environment, name, value, err);
}

/* Keeps the user's own file. outer: the directory of an outer launch, or an empty
 * text. */
static int set_file(const struct hvd_nccl_environment *environment, const char *directory,
                    const char *outer, int rank, struct hvd_error *err)
{
    char value[VALUE_BYTES];

    if (environment->get(environment->context, HVD_ENV_NCCL_DEBUG_FILE, value,
                         sizeof(value)) &&
        !is_made_for(outer, value)) {
        return 0;
    }
    write_file(directory, rank, value);
    return set_one(environment, HVD_ENV_NCCL_DEBUG_FILE, value, err);
}

static bool find_inspector(const struct hvd_nccl_environment *environment,
                           char path[PATH_MAX])
{
    char *list = malloc(LIBRARY_PATH_BYTES);
    bool is_found = false;

    if (list == NULL) {
        return false;
    }
    if (!environment->get(environment->context, HVD_ENV_LIBRARY_PATH, list,
                          LIBRARY_PATH_BYTES)) {
        list[0] = '\0';
    }
    for (const char *at = list; *at != '\0' && !is_found;) {
        const size_t length = strcspn(at, ":");

        is_found = length > 0 &&
                   snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, INSPECTOR) <=
                       PLUGIN_MOST &&
                   access(path, R_OK) == 0;
        at += length + (at[length] == ':' ? 1 : 0);
    }
    free(list);
    return is_found;
}

/* Switches the Inspector on, unless the user has chosen a plugin for profiling. */
static int set_inspector(const struct hvd_nccl_environment *environment,
                         const char *directory, const char *outer, struct hvd_error *err)
{
    char path[PATH_MAX];
    char dump[VALUE_BYTES];
    char found[VALUE_BYTES];
    int status;

    if (!find_inspector(environment, path) ||
        (environment->get(environment->context, HVD_ENV_NCCL_PROFILER, found,
                          sizeof(found)) &&
         strcmp(found, path) != 0)) {
        return 0;
    }
    status = set_one(environment, HVD_ENV_NCCL_PROFILER, path, err);
    if (status == 0) {
        status = set_default(environment, HVD_ENV_NCCL_INSPECTOR, "1", err);
    }
    if (status == 0) {
        status = set_default(environment, HVD_ENV_NCCL_INSPECTOR_INTERVAL,
                             INSPECTOR_MICROSECONDS, err);
    }
    name_dump(outer, dump);
    if (status != 0 ||
        (environment->get(environment->context, HVD_ENV_NCCL_INSPECTOR_DIRECTORY, found,
                          sizeof(found)) &&
         strcmp(found, dump) != 0)) {
        return status;
    }
    name_dump(directory, dump);
    return set_one(environment, HVD_ENV_NCCL_INSPECTOR_DIRECTORY, dump, err);
}

int hvd_nccl_files_set(const struct hvd_nccl_environment *environment, int rank,
                       struct hvd_error *err)
{
    char directory[PATH_MAX];
    char outer[PATH_MAX];
    char path[PATH_MAX];
    int status;

    if (!environment->get(environment->context, HVD_ENV_NCCL_FILES, directory,
                          sizeof(directory)) ||
        directory[0] == '\0') {
        return 0;
    }
    if (!environment->get(environment->context, HVD_ENV_NCCL_MADE_FOR, outer,
                          sizeof(outer))) {
        outer[0] = '\0';
    }
    status = make_absolute(directory, path, err);
    if (status == 0) {
        status = make_directory(path, err);
    }
    if (status == 0) {
        status = set_one(environment, HVD_ENV_NCCL_FILES, path, err);
    }
    if (status == 0) {
        status = set_file(environment, path, outer, rank, err);
    }
    if (status == 0) {
        status = set_one(environment, HVD_ENV_NCCL_MADE_FOR, path, err);
    }
    if (status == 0) {
        status = set_default(environment, HVD_ENV_NCCL_DEBUG, "WARN", err);
    }
    if (status == 0) {
        status = set_default(environment, HVD_ENV_NCCL_RAS, "1", err);
    }
    return status != 0 ? status : set_inspector(environment, path, outer, err);
}

/* --- this process --- */

static bool get_here(void *context, const char *name, char *value, size_t bytes)
{
    const char *found = getenv(name);

    (void)context;
    snprintf(value, bytes, "%s", found != NULL ? found : "");
    return found != NULL;
}

/* Leaves an equal value alone, because other threads may read the environment. */
static int set_here(void *context, const char *name, const char *value)
{
    const char *found = getenv(name);

    (void)context;
    return found != NULL && strcmp(found, value) == 0 ? 0 : setenv(name, value, 1);
}

int hvd_nccl_files_set_here(int rank, struct hvd_error *err)
{
    const struct hvd_nccl_environment here = {.get = get_here, .set = set_here};

    return hvd_nccl_files_set(&here, rank, err);
}

bool hvd_nccl_files_advise(const char *directory, const char *cause, char *line,
                           size_t bytes)
{
    if (directory != NULL && directory[0] != '\0' && strstr(cause, nccl_failed) != NULL &&
        snprintf(line, bytes, "to see NCCL's warnings on all ranks: hvd-info --nccl %s",
                 directory) < (int)bytes) {
        return true;
    }
    line[0] = '\0';
    return false;
}
