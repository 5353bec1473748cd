/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: makes libpmix report another version. */
#include <stdlib.h>

#include "gpu_binding/base/attr.h"

const char *PMIx_Get_version(void);

HVD_EXPORT const char *PMIx_Get_version(void)
{
    const char *version = getenv("HVD_TEST_PMIX_VERSION");

    return version != NULL ? version : "";
}
