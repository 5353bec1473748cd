/* SPDX-License-Identifier: Apache-2.0 */
/* Searches libhvd and looks its functions up. */
#include "contrib/info/check/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* Paths of libhvd relative to the folder of this program: as installed, and in a
 * build. */
static const char *const places[] = {HVD_INFO_LIBHVD, "../../collectives/libhvd.so"};

static void *open_beside(void)
{
    char self[2048], file[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;
    void *handle = NULL;

    if (length < 0) {
        return NULL;
    }
    self[length] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && handle == NULL; i++) {
        snprintf(file, sizeof(file), "%s/%s", self, places[i]);
        if (access(file, R_OK) == 0) {
            handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return handle;
}

static void *open_library(void)
{
    const char *chosen = getenv(HVD_ENV_LIBRARY);
    void *handle;

    if (chosen != NULL && chosen[0] != '\0') {
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    }
    handle = open_beside();
    return handle != NULL ? handle : dlopen("libhvd.so", RTLD_NOW | RTLD_LOCAL);
}

int hvd_info_library_open(struct hvd_info_library *library, struct hvd_error *err)
{
    struct hvd_info_library found = {0};
    const struct {
        const char *name;
        void *function; /* a pointer to a pointer to a function */
    } functions[] = {
        {"hvd_version", &found.version},
        {"hvd_start_describe", &found.start_describe},
        {"hvd_gpu_describe", &found.gpu_describe},
        {"hvd_init", &found.init},
        {"hvd_shutdown", &found.shutdown},
        {"hvd_rank", &found.rank},
        {"hvd_size", &found.size},
        {"hvd_host", &found.host},
        {"hvd_allreduce_start", &found.allreduce_start},
        {"hvd_gather_start", &found.gather_start},
        {"hvd_barrier_start", &found.barrier_start},
        {"hvd_send_start", &found.send_start},
        {"hvd_recv_start", &found.recv_start},
        {"hvd_wait_for", &found.wait_for},
        {"hvd_request_take", &found.request_take},
        {"hvd_request_free", &found.request_free},
        {"hvd_free", &found.free},
    };
    void *handle = open_library();

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = handle != NULL ? dlsym(handle, functions[i].name) : NULL;

        if (symbol == NULL) {
            return hvd_fail(
                err, HVD_ERR_UNSUPPORTED,
                "cannot load libhvd.so (%.300s): install all of hvd, or set %s to "
                "its path",
                dlerror(), HVD_ENV_LIBRARY);
        }
        /* POSIX: symbols and functions have the same representation */
        memcpy(functions[i].function, &symbol, sizeof(symbol));
    }
    *library = found;
    return 0;
}
