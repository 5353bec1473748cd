/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of libhvd that are files of their own, because they need libraries that not every
 * machine has: they are loaded when they are needed. */
#ifndef HVD_MODULE_H
#define HVD_MODULE_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_module_source {
    const char *file; /* "hvd_gpu.so", in the folder hvd beside libhvd */
    const char *built; /* its folder in a build, below that of libhvd */
    const char *variable; /* an environment variable that names another file */
    const char *purpose; /* how messages begin: "GPU tensors need" */
    const char *symbol; /* of the structure that it offers, which begins with an int: */
    int version;
};

/* Loads it, for good. Returns the structure, and in from, unless size is 0, the file; or
 * NULL, with HVD_ERR_UNSUPPORTED and the reason in err. Any thread. */
const void *hvd_module_load(const struct hvd_module_source *source, char *from,
                            size_t size, struct hvd_error *err);

#endif
