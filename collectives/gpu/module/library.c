/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the functions of a library that is loaded at run time. */
#include "collectives/gpu/module/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *look_up(void *handle, const struct hvd_library_symbol *symbol)
{
    void *found = dlsym(handle, symbol->name);

    return found != NULL || symbol->older_name == NULL
               ? found
               : dlsym(handle, symbol->older_name);
}

static void name_file(const void *function, struct hvd_gpu_library *found)
{
    Dl_info info;

    if (dladdr(function, &info) != 0 && info.dli_fname != NULL) {
        snprintf(found->file, sizeof(found->file), "%s", info.dli_fname);
    }
}

int hvd_library_bind(void *handle, const struct hvd_library_symbol *symbols, size_t count,
                     void *table, struct hvd_gpu_library *found)
{
    for (size_t i = 0; i < count; i++) {
        void *function = look_up(handle, &symbols[i]);

        if (function == NULL && !symbols[i].is_optional) {
            snprintf(found->problem, sizeof(found->problem),
                     "the library lacks the function %s: it is too old or incomplete",
                     symbols[i].name);
            return HVD_ERR_UNSUPPORTED;
        }
        if (function != NULL && found->file[0] == '\0') {
            name_file(function, found);
        }
        /* POSIX allows storing a pointer to a function as a pointer to data. */
        memcpy((char *)table + symbols[i].offset, &function, sizeof(function));
    }
    return 0;
}
