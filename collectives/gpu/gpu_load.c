/* SPDX-License-Identifier: Apache-2.0 */
/* Loading hvd_gpu.so. */
#include "collectives/gpu/gpu_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

static const struct hvd_gpu_module *loaded;
static char loaded_from[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* As installed, and as built. */
static const char *const places[] = {"hvd/hvd_gpu.so", "gpu/module/hvd_gpu.so"};

/* The folder that this code is in, with a slash. */
static int find_folder(char *folder, size_t size)
{
    Dl_info info;
    const char *slash;

    if (dladdr(places, &info) == 0 || info.dli_fname == NULL) {
        return 0;
    }
    slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? 0
                         : snprintf(folder, size, "%.*s",
                                    (int)(slash + 1 - info.dli_fname), info.dli_fname);
}

static void choose_file(char *file, size_t size)
{
    const char *chosen = getenv(HVD_ENV_GPU_MODULE);
    char folder[2048] = "";

    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(file, size, "%s", chosen);
        return;
    }
    find_folder(folder, sizeof(folder));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(file, size, "%s%s", folder, places[i]);
        if (access(file, R_OK) == 0) {
            return;
        }
    }
    snprintf(file, size, "%s%s", folder, places[0]);
}

static int load(struct hvd_error *err)
{
    char file[4096];
    const struct hvd_gpu_module *module;
    void *handle;

    choose_file(file, sizeof(file));
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "GPU tensors need hvd_gpu.so, which cannot be loaded (%.250s): it is "
            "installed with hvd as %s beside libhvd.so; " HVD_ENV_GPU_MODULE
            " names it elsewhere",
            dlerror(), places[0]);
    }
    module = dlsym(handle, HVD_GPU_MODULE_SYMBOL);
    if (module == NULL || module->version != HVD_GPU_MODULE_VERSION) {
        dlclose(handle);
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "%.250s belongs to another version of hvd than libhvd.so: install "
            "both together",
            file);
    }
    snprintf(loaded_from, sizeof(loaded_from), "%s", file);
    loaded = module;
    return 0;
}

const struct hvd_gpu_module *hvd_gpu_load(struct hvd_error *err)
{
    const struct hvd_gpu_module *module;

    pthread_mutex_lock(&lock);
    if (loaded == NULL) {
        load(err);
    }
    module = loaded;
    pthread_mutex_unlock(&lock);
    return module;
}

const char *hvd_gpu_loaded_from(void)
{
    return loaded_from;
}
