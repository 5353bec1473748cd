/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's plugin keeps the name of the library as one string, or its folder and its name
 * as two. The plugin is searched for these strings, because it cannot be asked: if it is
 * loaded and does not find the library, it prints an error. */
#include "spank/slurm_pmix.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char library_name[] = "libpmix.so";

static bool opens(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

    if (library != NULL) {
        dlclose(library);
    }
    return library != NULL;
}

/* Whether the string is the name of the library, with or without a folder. */
static bool is_library(const char *string, size_t length)
{
    const size_t bytes = sizeof(library_name) - 1;

    return length >= bytes && memcmp(string + length - bytes, library_name, bytes) == 0 &&
           (length == bytes || string[0] == '/');
}

static bool is_folder_with_library(const char *folder)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/%s", folder, library_name) < PATH_MAX &&
           access(path, R_OK) == 0;
}

static bool finds_library(const char *bytes, size_t count)
{
    bool names_library = false;

    for (size_t at = 0, length; at < count; at += length + 1) {
        const char *string = bytes + at;

        length = strnlen(string, count - at);
        if (length == 0 || at + length == count) {
            continue; /* without its null byte, it is no string */
        }
        if (is_library(string, length)) {
            names_library = true;
            if (opens(string)) {
                return true;
            }
        } else if (string[0] == '/' && length < PATH_MAX &&
                   is_folder_with_library(string)) {
            return true;
        }
    }
    return !names_library;
}

bool hvd_spank_slurm_pmix_works(const char *plugin_path)
{
    int fd = open(plugin_path, O_RDONLY | O_CLOEXEC);
    bool works = fd >= 0;
    struct stat status;

    if (works && fstat(fd, &status) == 0 && status.st_size > 0) {
        size_t count = (size_t)status.st_size;
        void *bytes = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, 0);

        if (bytes != MAP_FAILED) {
            works = finds_library(bytes, count);
            munmap(bytes, count);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return works;
}
