/* SPDX-License-Identifier: Apache-2.0 */
/* srun has read slurm.conf, or got it from slurmctld, into a variable that it exports and that no
 * interface of plugins shows. The plugin is built for one release of Slurm, and so are its fields. */
#include "spank/srun_ports.h"

#include <dlfcn.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"

void hvd_spank_srun_ports(char text[HVD_SPANK_SRUN_PORTS_BYTES])
{
    const char *chosen = getenv(HVD_ENV_PORT_RANGE);
    const slurm_conf_t *conf = dlsym(RTLD_DEFAULT, "slurm_conf");

    text[0] = '\0';
    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(text, HVD_SPANK_SRUN_PORTS_BYTES, "%s", chosen);
    } else if (conf != NULL && conf->srun_port_range != NULL) {
        snprintf(text, HVD_SPANK_SRUN_PORTS_BYTES, "%u-%u",
                 (unsigned)conf->srun_port_range[0], (unsigned)conf->srun_port_range[1]);
    }
}
