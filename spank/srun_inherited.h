/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans the environment of an srun that runs inside a task of another step. Such an srun
 * inherits values that belong to that task alone, and settings that Slurm would take for
 * the user's. */
#ifndef HVD_SPANK_SRUN_INHERITED_H
#define HVD_SPANK_SRUN_INHERITED_H

#include "spank/srun_options.h"

/* Removes the address of the outer step's service, because srun starts another step. */
void hvd_spank_srun_inherited_drop_service(void);

/* Removes SLURM_NTASKS_PER_NODE if the plugin set it for the outer task: srun would take
 * it for a choice of the user. Call this before srun reads its options. */
void hvd_spank_srun_inherited_drop_layout(void);

/* Removes the variables that hvd set for the outer task, if there is one. */
void hvd_spank_srun_inherited_drop_task(void);

/* Resets the CPU binding that slurmstepd chose for the task. A binding that the user
 * chose stays. */
void hvd_spank_srun_inherited_drop_binding(
    const struct hvd_spank_srun_options *srun_options);

/* Resets the MPI type that srun chose for the outer step. */
void hvd_spank_srun_inherited_drop_mpi(const struct hvd_spank_srun_options *srun_options);

#endif
