/* SPDX-License-Identifier: Apache-2.0 */
/* Adds variables to the environment of srun, which becomes the environment of the
 * tasks. */
#include "spank/srun_environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gpu_binding/base/env.h"
#include "spank/python.h"

static const char *const names[HVD_SPANK_SRUN_ENV_COUNT] = {
    [HVD_SPANK_SRUN_ENV_PMIX_TIMEOUT] = HVD_ENV_SLURM_PMIX_TIMEOUT,
    [HVD_SPANK_SRUN_ENV_PMIX_FENCE] = HVD_ENV_SLURM_PMIX_FENCE,
    [HVD_SPANK_SRUN_ENV_REQUEST] = HVD_ENV_REQUEST,
};

void hvd_spank_srun_environment_set_default(
    struct hvd_spank_srun_environment *environment, enum hvd_spank_srun_variable variable,
    const char *value)
{
    if (getenv(names[variable]) == NULL && setenv(names[variable], value, 0) == 0) {
        environment->is_default[variable] = true;
    }
}

void hvd_spank_srun_environment_reset(struct hvd_spank_srun_environment *environment)
{
    for (int i = 0; i < HVD_SPANK_SRUN_ENV_COUNT; i++) {
        if (environment->is_default[i]) {
            unsetenv(names[i]);
            environment->is_default[i] = false;
        }
    }
}

void hvd_spank_srun_environment_set_key(void)
{
    unsigned char random[32];
    char text[2 * sizeof(random) + 1];

    unsetenv(HVD_ENV_STEP_KEY);
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return;
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    }
    setenv(HVD_ENV_STEP_KEY, text, 1);
}

void hvd_spank_srun_environment_add_front_end(const char *dir)
{
    const char *path = getenv(HVD_ENV_PYTHONPATH);
    size_t bytes = (path != NULL ? strlen(path) : 0) + strlen(dir) + 2;
    char *joined = dir[0] != '\0' ? malloc(bytes) : NULL;

    if (joined != NULL && hvd_spank_python_path(path, dir, joined, bytes)) {
        setenv(HVD_ENV_PYTHONPATH, joined, 1);
    }
    free(joined);
}

void hvd_spank_srun_environment_remove_front_end(const char *dir)
{
    const char *path = getenv(HVD_ENV_PYTHONPATH);
    size_t bytes = path != NULL ? strlen(path) + 1 : 0;
    char *rest = bytes > 0 && dir[0] != '\0' ? malloc(bytes) : NULL;

    if (rest != NULL && hvd_spank_python_path_without(path, dir, rest, bytes)) {
        if (rest[0] != '\0') {
            setenv(HVD_ENV_PYTHONPATH, rest, 1);
        } else {
            unsetenv(HVD_ENV_PYTHONPATH);
        }
    }
    free(rest);
}
