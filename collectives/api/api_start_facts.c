/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: how this process would find the other ranks. */
#include <stdio.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"

HVD_EXPORT int hvd_start_describe(char *text, size_t size)
{
    struct hvd_error err = {0};
    const char *how = NULL;
    int status = hvd_boot_describe(&how, &err);

    snprintf(text, size, "%s", status == 0 ? how : err.text);
    return status;
}
