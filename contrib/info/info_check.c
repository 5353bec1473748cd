/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check loads libhvd and the libraries that it needs; other options do not. */
#include "contrib/info/info_check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "contrib/info/info_variables.h"

typedef int describe_function(char *text, size_t size);

enum {
    TEXT_BYTES = 4096
};

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

/* Calls one of libhvd's functions that write a description to text[TEXT_BYTES]; *status
 * is what the function returns. */
static int ask_function(void *handle, const char *function, char *text, int *status,
                        struct hvd_error *err)
{
    describe_function *describe = NULL;
    void *symbol = handle != NULL ? dlsym(handle, function) : NULL;

    if (symbol == NULL) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "cannot load libhvd.so (%.300s): install all of hvd, or set %s to "
            "its path",
            dlerror(), HVD_ENV_LIBRARY);
    }
    /* POSIX: symbols and functions have the same representation */
    memcpy(&describe, &symbol, sizeof(symbol));
    *status = describe(text, TEXT_BYTES);
    return 0;
}

/* Prints how PMIx checks who connects. If it offers several modes, the client chooses
 * one; an attacker would choose native, which is not secure. */
static void print_pmix_security(void)
{
    const char *modes = getenv(HVD_ENV_PMIX_SECURITY);

    if (modes == NULL) {
        return;
    }
    if (strcmp(modes, "munge") == 0) {
        printf("PMIx: asks munge for the user of each process that connects\n");
    } else {
        printf("PMIx: believes the user id that a process claims (" HVD_ENV_PMIX_SECURITY
               "=%.60s), so any user of this node can end a step: an administrator "
               "can change that in mpi.conf, see security.md\n",
               modes);
    }
}

int hvd_info_check(hvd_info_lookup lookup, struct hvd_error *err)
{
    void *handle = open_library();
    char start[TEXT_BYTES] = "";
    char gpus[TEXT_BYTES] = "";
    int start_status = 0;
    int gpu_status = 0;
    int status = ask_function(handle, "hvd_start_describe", start, &start_status, err);

    status = status == 0
                 ? ask_function(handle, "hvd_gpu_describe", gpus, &gpu_status, err)
                 : status;
    if (status != 0) {
        return status;
    }
    printf("start: %s%s\n", start_status == 0 ? "by " : "impossible: ", start);
    print_pmix_security();
    hvd_info_variables_print(lookup, stdout);
    fputs(gpus, stdout);
    if (fflush(stdout) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
    }
    if (start_status != 0) {
        return hvd_fail(err, start_status, "hvd.init() would fail here");
    }
    return gpu_status == 0 ? 0
                           : hvd_fail(err, gpu_status, "GPU tensors cannot be used here");
}
