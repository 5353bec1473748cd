/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded at run time; its functions go into a struct of pointers. */
#ifndef HVD_GPU_LIBRARY_H
#define HVD_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/gpu/gpu_module.h"

struct hvd_library_symbol {
    const char *name;
    const char *older_name; /* used if name is missing; may be NULL */
    size_t offset; /* position of the function pointer in the struct */
    bool is_optional; /* false: the library is unusable without this function */
};

/* Fills the table with the first `count` symbols. Stores the path of the library in
 * found, or, if a function is missing, its name in found->problem. */
int hvd_library_bind(void *handle, const struct hvd_library_symbol *symbols, size_t count,
                     void *table, struct hvd_gpu_library *found);

#endif
