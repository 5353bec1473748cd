/* SPDX-License-Identifier: Apache-2.0 */
/* Loads parts of libhvd that are files of their own. */
#include "gpu_binding/base/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096
};

void hvd_module_folder(char *folder, size_t size)
{
    static const char here;
    Dl_info info;
    const char *slash;

    folder[0] = '\0';
    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) {
        return;
    }
    slash = strrchr(info.dli_fname, '/');
    if (slash != NULL) {
        snprintf(folder, size, "%.*s", (int)(slash + 1 - info.dli_fname), info.dli_fname);
    }
}

/* Chooses the file that the variable names, else the one of a build, else the installed
 * one. */
static void choose_file(const struct hvd_module_source *source, char *file)
{
    const char *const folders[] = {"hvd", source->built};
    const char *chosen = getenv(source->variable);
    char folder[PATH_BYTES / 2];

    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(file, PATH_BYTES, "%s", chosen);
        return;
    }
    hvd_module_folder(folder, sizeof(folder));
    for (int i = 1; i >= 0; i--) {
        snprintf(file, PATH_BYTES, "%s%s/%s", folder, folders[i], source->file);
        if (access(file, R_OK) == 0) {
            return;
        }
    }
}

const void *hvd_module_load(const struct hvd_module_source *source, char *from,
                            size_t size, struct hvd_error *err)
{
    char file[PATH_BYTES];
    const int *module;
    void *handle;

    choose_file(source, file);
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        hvd_fail(err, HVD_ERR_UNSUPPORTED,
                 "%s %s, which cannot be loaded (%.250s): install it as hvd/%s beside "
                 "libhvd.so, or set %s to its path",
                 source->purpose, source->file, dlerror(), source->file,
                 source->variable);
        return NULL;
    }
    module = dlsym(handle, source->symbol);
    if (module == NULL || *module != source->version) {
        dlclose(handle);
        hvd_fail(err, HVD_ERR_UNSUPPORTED,
                 "%.250s belongs to another version of hvd than libhvd.so: install both "
                 "together",
                 file);
        return NULL;
    }
    if (size > 0) {
        snprintf(from, size, "%s", file);
    }
    return module;
}
