/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside slurmstepd, before its tasks exist. Nothing here fails the step: a
 * failure would drain the node. What must not go on is kept in launch->refusal. */
#ifndef HVD_SPANK_STEPD_H
#define HVD_SPANK_STEPD_H

#include "spank/launch.h"

struct spank_handle;

/* As root: copies what Slurm will narrow for each task. Switches hvd off in batch,
 * interactive and extern steps. */
void hvd_stepd_read(struct hvd_launch *launch, struct spank_handle *spank);

/* As the user: reads the topology, checks what is the same for all tasks of the node, and
 * tells the user what is wrong. */
void hvd_stepd_prepare(struct hvd_launch *launch, struct spank_handle *spank);

void hvd_stepd_finish(struct hvd_launch *launch);

#endif
