/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether Slurm's plugin for PMIx can work on this machine. */
#ifndef HVD_SPANK_SLURM_PMIX_H
#define HVD_SPANK_SLURM_PMIX_H

#include <stdbool.h>

/* Returns false if the plugin does not exist, or if it opens libpmix.so at run time and
 * that is not there: Debian has this name, which lacks a version, in libpmix-dev only.
 * srun would then end with "Invalid MPI type 'pmix'". Returns true if the plugin does not
 * name a library to open. */
bool hvd_spank_slurm_pmix_works(const char *plugin_path);

#endif
