/* SPDX-License-Identifier: Apache-2.0 */
/* The program that starts the ranks: hvdrun itself, or another launcher that replaces
 * hvdrun. */
#ifndef HVDRUN_LAUNCHER_H
#define HVDRUN_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "pmix_boot/hvdrun/options.h"

enum hvdrun_launcher {
    HVDRUN_LAUNCHER_LOCAL, /* all ranks on this machine */
    HVDRUN_LAUNCHER_SRUN, /* in a Slurm allocation */
    HVDRUN_LAUNCHER_MPIRUN, /* on other hosts: needs an mpirun or prterun */
};

/* Chooses the launcher. `environment` is a list like environ; `own` is this machine's
 * name. Returns HVD_ERR_ARG if the number of ranks is missing or does not fit the
 * hosts. */
int hvdrun_launcher_choose(const struct hvdrun_options *options,
                           const char *const *environment, const char *own,
                           enum hvdrun_launcher *launcher, struct hvd_error *err);

/* Replaces hvdrun by the other launcher (exec). Returns only if that fails. */
int hvdrun_launcher_exec(const struct hvdrun_options *options,
                         enum hvdrun_launcher launcher, struct hvd_error *err);

/* Make the command lines of the other launchers. The caller finishes *words, also after a
 * failure. `mpirun` is the path of Open MPI's mpirun or of prterun. */
int hvdrun_launcher_srun(const struct hvdrun_options *options,
                         struct hvdrun_string_list *words, struct hvd_error *err);
int hvdrun_launcher_mpirun(const struct hvdrun_options *options,
                           const char *const *environment, const char *mpirun,
                           struct hvdrun_string_list *words, struct hvd_error *err);

/* Searches PATH for a program. Returns whether there is one; writes its path. */
bool hvdrun_find_in_path(const char *name, char *path, size_t bytes);

#endif
