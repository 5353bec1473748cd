/* SPDX-License-Identifier: Apache-2.0 */
/* Adds variables to the environment of srun, which becomes the environment of the
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

/* Zeroed: no variable was added. */
struct hvd_spank_srun_environment {
    bool is_default[HVD_SPANK_SRUN_ENV_COUNT];
};

/* Sets a variable unless it is set already. */
void hvd_spank_srun_environment_set_default(
    struct hvd_spank_srun_environment *environment, enum hvd_spank_srun_variable variable,
    const char *value);

/* Removes the variables that were added. */
void hvd_spank_srun_environment_reset(struct hvd_spank_srun_environment *environment);

/* Sets SLURM_HVD_KEY to a random key for the step, which replaces the key of an outer
 * step. If the kernel has no random bytes, the variable stays unset. */
void hvd_spank_srun_environment_set_key(void);

/* Adds dir to PYTHONPATH for the tasks. The plugin on their node does this, too; if it is
 * missing there, the package in dir reports it, instead of Python's "No module named". */
void hvd_spank_srun_environment_add_front_end(const char *dir);

/* Removes the directory that the plugin added to PYTHONPATH of the batch script in which
 * this srun runs. */
void hvd_spank_srun_environment_remove_front_end(const char *dir);

#endif
