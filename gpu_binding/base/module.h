/* SPDX-License-Identifier: Apache-2.0 */
/* Loads parts of libhvd that are files of their own, because they need libraries that not
 * every machine has. */
#ifndef HVD_MODULE_H
#define HVD_MODULE_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_module_source {
    const char *file; /* "hvd_gpu.so", in the folder hvd beside libhvd */
    const char *built; /* folder of the file in a build, below the folder of libhvd */
    const char *variable; /* an environment variable that names another file */
    const char *purpose; /* the beginning of messages, such as "GPU tensors need" */
    /* name of the structure that the module exports; it begins with an int, its
     * version */
    const char *symbol;
    int version;
};

/* Writes the folder of libhvd, or of the program that contains this code, with a slash at
 * the end; "": it is not known. */
void hvd_module_folder(char *folder, size_t size);

/* Loads the module for good. Returns its structure and, unless size is 0, writes the path
 * of its file to from. On failure, returns NULL with HVD_ERR_UNSUPPORTED and the reason
 * in err. Any thread may call it. */
const void *hvd_module_load(const struct hvd_module_source *source, char *from,
                            size_t size, struct hvd_error *err);

#endif
