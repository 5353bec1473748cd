/* SPDX-License-Identifier: Apache-2.0 */
/* Reads srun's own command line for two facts that neither SPANK nor srun's options tell:
 * which program srun will start, and whether the user typed an option or srun inherited
 * it from the job. */
#ifndef HVD_SPANK_SRUN_COMMAND_H
#define HVD_SPANK_SRUN_COMMAND_H

#include <stdbool.h>

struct hvd_spank_srun_command {
    /* the program's name if it starts the ranks of a node itself; otherwise NULL */
    const char *launcher;
    bool has_tasks; /* the user typed a number of tasks */
};

/* True if this srun only gives the user a shell on the first node: with
 * LaunchParameters=use_interactive_step, salloc starts one. It inherits --hvd for the
 * steps that will follow, but starts no ranks. */
bool hvd_spank_srun_command_is_interactive(void);

/* Reads the command line of a step with one component. Call it when srun has parsed its
 * options: only then is the beginning of the program known. */
void hvd_spank_srun_command_read(struct hvd_spank_srun_command *command);

#endif
