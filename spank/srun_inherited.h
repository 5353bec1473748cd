/* SPDX-License-Identifier: Apache-2.0 */
/* An srun that runs inside a task of another step inherits the environment of that task:
 * values that belong to the task alone, and settings that Slurm takes for the user's. */
#ifndef HVD_SPANK_SRUN_INHERITED_H
#define HVD_SPANK_SRUN_INHERITED_H

#include "spank/srun_options.h"

/* Removes the address of the outer step's service: an srun begins another step. */
void hvd_spank_srun_inherited_drop_service(void);

/* Removes the variables that hvd set for the task. Does nothing elsewhere. */
void hvd_spank_srun_inherited_drop_task(void);

/* Resets the CPU binding that slurmstepd chose for the task. A binding of the user
 * stays. */
void hvd_spank_srun_inherited_drop_binding(
    const struct hvd_spank_srun_options *srun_options);

/* Resets the MPI type that srun chose for the outer step. */
void hvd_spank_srun_inherited_drop_mpi(const struct hvd_spank_srun_options *srun_options);

#endif
