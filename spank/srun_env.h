/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd adds to the environment of srun, which becomes the environment of the tasks. */
#ifndef HVD_SPANK_SRUN_ENV_H
#define HVD_SPANK_SRUN_ENV_H

#include <stdbool.h>

enum hvd_srun_variable {
    HVD_SRUN_PMIX_TIMEOUT,
    HVD_SRUN_PMIX_FENCE,
    HVD_SRUN_REQUEST,
    HVD_SRUN_VARIABLE_COUNT,
};

/* Zeroed: nothing was added. */
struct hvd_srun_env {
    bool is_made[HVD_SRUN_VARIABLE_COUNT];
};

/* Adds a variable that does not exist yet. */
void hvd_srun_env_offer(struct hvd_srun_env *env, enum hvd_srun_variable variable,
                        const char *value);

/* Removes what was added. */
void hvd_srun_env_withdraw(struct hvd_srun_env *env);

/* Adds dir to PYTHONPATH for the tasks. The plugin on their node does it as well; where it is
 * missing, the package in dir then says so, in place of Python's "No module named". */
void hvd_srun_env_add_front_end(const char *dir);

/* Removes what the plugin gave to the batch script in which this srun runs. */
void hvd_srun_env_remove_front_end(const char *dir);

#endif
