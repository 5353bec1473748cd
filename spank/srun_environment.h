/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd adds to the environment of srun, which becomes the environment of the
 * tasks. */
#ifndef HVD_SPANK_SRUN_ENVIRONMENT_H
#define HVD_SPANK_SRUN_ENVIRONMENT_H

#include <stdbool.h>

enum hvd_spank_srun_variable {
    HVD_SPANK_SRUN_ENV_PMIX_TIMEOUT,
    HVD_SPANK_SRUN_ENV_PMIX_FENCE,
    HVD_SPANK_SRUN_ENV_REQUEST,
    HVD_SPANK_SRUN_ENV_COUNT,
};

/* Zeroed: nothing was added. */
struct hvd_spank_srun_environment {
    bool is_default[HVD_SPANK_SRUN_ENV_COUNT];
};

/* Sets a variable that is not set yet. */
void hvd_spank_srun_environment_set_default(
    struct hvd_spank_srun_environment *environment, enum hvd_spank_srun_variable variable,
    const char *value);

/* Removes what was added. */
void hvd_spank_srun_environment_reset(struct hvd_spank_srun_environment *environment);

/* Gives the tasks a random key of the step in SLURM_HVD_KEY, in place of that of an outer
 * step. Without randomness there is none. */
void hvd_spank_srun_environment_set_key(void);

/* Adds dir to PYTHONPATH for the tasks. The plugin on their node does it as well; where
 * it is missing, the package in dir reports that, instead of Python's "No module
 * named". */
void hvd_spank_srun_environment_add_front_end(const char *dir);

/* Removes the directory that the plugin added for the batch script around this srun. */
void hvd_spank_srun_environment_remove_front_end(const char *dir);

#endif
