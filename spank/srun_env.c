/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd adds to the environment of srun, which becomes the environment of the tasks. */
#include "spank/srun_env.h"

#include <stdlib.h>

#include "gpu_binding/env.h"

static const char *const names[HVD_SRUN_VARIABLE_COUNT] = {
    [HVD_SRUN_PMIX_TIMEOUT] = HVD_ENV_SLURM_PMIX_TIMEOUT,
    [HVD_SRUN_PMIX_FENCE] = HVD_ENV_SLURM_PMIX_FENCE,
    [HVD_SRUN_REQUEST] = HVD_ENV_REQUEST,
};

void hvd_srun_env_offer(struct hvd_srun_env *env, enum hvd_srun_variable variable,
                        const char *value)
{
    if (getenv(names[variable]) == NULL && setenv(names[variable], value, 0) == 0) {
        env->is_made[variable] = true;
    }
}

void hvd_srun_env_withdraw(struct hvd_srun_env *env)
{
    for (int i = 0; i < HVD_SRUN_VARIABLE_COUNT; i++) {
        if (env->is_made[i]) {
            unsetenv(names[i]);
            env->is_made[i] = false;
        }
    }
}
