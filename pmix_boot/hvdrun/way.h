/* SPDX-License-Identifier: Apache-2.0 */
/* Who starts the ranks: hvdrun itself, or the launcher that owns the hosts. Pure. */
#ifndef HVDRUN_WAY_H
#define HVDRUN_WAY_H

#include "pmix_boot/hvdrun/options.h"

enum hvdrun_way {
    HVDRUN_WAY_LOCAL, /* all ranks on this machine */
    HVDRUN_WAY_SRUN, /* in a Slurm allocation */
    HVDRUN_WAY_MPIRUN, /* on other hosts: needs an mpirun or prterun */
};

/* environment is a list like environ; own is this machine's name. HVD_ERR_ARG when the
 * number of ranks is missing or does not fit the hosts. */
int hvdrun_way_choose(const struct hvdrun_options *options,
                      const char *const *environment, const char *own,
                      enum hvdrun_way *way, struct hvd_error *err);

/* The command lines of the other launchers; *words is the caller's to finish, also after a
 * failure. mpirun is the path of Open MPI's mpirun or of prterun. */
int hvdrun_way_srun(const struct hvdrun_options *options, struct hvdrun_words *words,
                    struct hvd_error *err);
int hvdrun_way_mpirun(const struct hvdrun_options *options,
                      const char *const *environment, const char *mpirun,
                      struct hvdrun_words *words, struct hvd_error *err);

#endif
