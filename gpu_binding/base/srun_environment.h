/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of an srun that hvd itself starts, to add a step to a job. */
#ifndef HVD_SRUN_ENVIRONMENT_H
#define HVD_SRUN_ENVIRONMENT_H

#include <limits.h>

enum {
    HVD_SRUN_VARIABLES = 4
};

struct hvd_srun_environment {
    char *variables[HVD_SRUN_VARIABLES + 1]; /* for execve; point into texts */
    char texts[HVD_SRUN_VARIABLES][PATH_MAX];
};

/* Copies only the variables that srun needs. srun takes defaults from SLURM_*, and
 * plugins take theirs from SPANK_*: with the variables of a step around this process,
 * srun would bind, distribute and export as that step does. */
void hvd_srun_environment_fill(struct hvd_srun_environment *environment);

#endif
