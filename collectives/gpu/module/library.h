/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is found at run time, and its functions in a struct of pointers. */
#ifndef HVD_GPU_LIBRARY_H
#define HVD_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/gpu/gpu_module.h"

struct hvd_library_symbol {
    const char *name;
    const char *older_name; /* used if name is missing; may be NULL */
    size_t offset; /* of the pointer in the struct */
    bool is_optional; /* else the library is unusable without it */
};

/* Fills in table from the first count symbols. found: the library's file, or in problem
 * what is missing. */
int hvd_library_bind(void *handle, const struct hvd_library_symbol *symbols, size_t count,
                     void *table, struct hvd_gpu_library *found);

#endif
