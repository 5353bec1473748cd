/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd adds to the environment of srun, which becomes the environment of the tasks. */
#include "spank/srun_env.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "spank/python.h"

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

void hvd_srun_env_add_front_end(const char *dir)
{
    const char *path = getenv(HVD_ENV_PYTHONPATH);
    size_t bytes = (path != NULL ? strlen(path) : 0) + strlen(dir) + 2;
    char *joined = dir[0] != '\0' ? malloc(bytes) : NULL;

    if (joined != NULL && hvd_python_path(path, dir, joined, bytes)) {
        setenv(HVD_ENV_PYTHONPATH, joined, 1);
    }
    free(joined);
}

void hvd_srun_env_remove_front_end(const char *dir)
{
    const char *path = getenv(HVD_ENV_PYTHONPATH);
    size_t bytes = path != NULL ? strlen(path) + 1 : 0;
    char *rest = bytes > 0 && dir[0] != '\0' ? malloc(bytes) : NULL;

    if (rest != NULL && hvd_python_path_without(path, dir, rest, bytes)) {
        if (rest[0] != '\0') {
            setenv(HVD_ENV_PYTHONPATH, rest, 1);
        } else {
            unsetenv(HVD_ENV_PYTHONPATH);
        }
    }
    free(rest);
}
