/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside srun, as the user: switches PMIx on, asks for one task per GPU, and
 * refuses what cannot work before anything starts. */
#ifndef HVD_SPANK_SRUN_H
#define HVD_SPANK_SRUN_H

#include "spank/launch.h"

struct spank_handle;

/* Before options are read. */
void hvd_srun_init(struct hvd_launch *launch);

/* After launch->options changed; may come several times, undoes what an earlier one did. */
void hvd_srun_option(struct hvd_launch *launch);

/* All options are known, nothing is allocated. Returns 0, or a negative status and the
 * reason in launch->refusal: then srun must end. */
int hvd_srun_check(struct hvd_launch *launch);

/* The step exists and is about to start. As hvd_srun_check, but srun cannot be stopped any
 * more: a refusal travels to the tasks, which do not start. */
int hvd_srun_launch(struct hvd_launch *launch, struct spank_handle *spank);

/* srun ends. Explains a step that Slurm refused because of what hvd asked for. */
void hvd_srun_exit(struct hvd_launch *launch);

#endif
