/* SPDX-License-Identifier: Apache-2.0 */
/* A home directory for libpmix. */
#include "pmix_boot/pmix_home.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

void hvd_pmix_need_home(void)
{
    if (getenv(HVD_ENV_HOME) == NULL && getpwuid(geteuid()) == NULL) {
        setenv(HVD_ENV_HOME, "/", 0);
    }
}
