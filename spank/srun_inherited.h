/* SPDX-License-Identifier: Apache-2.0 */
/* An srun that a task of another step starts inherits that task's environment: what is true
 * for the one task, and what Slurm obeys as if the user had asked for it. */
#ifndef HVD_SPANK_SRUN_INHERITED_H
#define HVD_SPANK_SRUN_INHERITED_H

#include "spank/srun_options.h"

/* Removes what an outer launch by hvd wrote for its own task. Does nothing elsewhere. */
void hvd_spank_srun_inherited_drop_task(void);

/* Resets the cpu binding that slurmstepd wrote for its own task. A binding that the user
 * asked for stays. */
void hvd_spank_srun_inherited_drop_binding(
    const struct hvd_spank_srun_options *srun_options);

/* Resets the choice of MPI that srun wrote for the outer step. */
void hvd_spank_srun_inherited_drop_mpi(const struct hvd_spank_srun_options *srun_options);

#endif
