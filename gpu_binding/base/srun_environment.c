/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_binding/base/srun_environment.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"

void hvd_srun_environment_fill(struct hvd_srun_environment *environment)
{
    static const char *const names[HVD_SRUN_VARIABLES] = {
        HVD_ENV_PATH, HVD_ENV_HOME, HVD_ENV_LIBRARY_PATH, HVD_ENV_SLURM_CONF};
    int count = 0;

    for (int i = 0; i < HVD_SRUN_VARIABLES; i++) {
        const char *value = getenv(names[i]);

        if (value != NULL && snprintf(environment->texts[count], PATH_MAX, "%s=%s",
                                      names[i], value) < PATH_MAX) {
            environment->variables[count] = environment->texts[count];
            count++;
        }
    }
    environment->variables[count] = NULL;
}
