/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm where there is an allocation, mpirun where there are other hosts, else hvdrun. */
#include "pmix_boot/hvdrun/way.h"

#include <stdlib.h>

#include "pmix_boot/hvdrun/hosts.h"
#include "pmix_boot/launch_env.h"

static int check_slots(const struct hvdrun_options *options,
                       const struct hvdrun_host *hosts, int count, struct hvd_error *err)
{
    int slots = 0;

    for (int i = 0; i < count; i++) {
        slots += hosts[i].slots;
    }
    if (options->ranks > slots) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "-np %d: the hosts %s have room for %d ranks; say HOST:N",
                        options->ranks, options->hosts, slots);
    }
    return 0;
}

/* Whether one of the hosts is another machine, or a negative status. */
static int has_remote(const struct hvdrun_options *options, const char *own,
                      struct hvd_error *err)
{
    struct hvdrun_host *hosts;
    int count = hvdrun_hosts_parse(options->hosts, &hosts, err);
    int result;

    if (count < 0) {
        return count;
    }
    result = check_slots(options, hosts, count, err);
    for (int i = 0; i < count && result == 0; i++) {
        result = hvdrun_host_is_local(hosts[i].name, own) ? 0 : 1;
    }
    free(hosts);
    return result;
}

int hvdrun_way_choose(const struct hvdrun_options *options,
                      const char *const *environment, const char *own,
                      enum hvdrun_way *way, struct hvd_error *err)
{
    int is_remote = options->hosts != NULL ? has_remote(options, own, err) : 0;

    if (is_remote < 0) {
        return is_remote;
    }
    if (hvd_launch_is_slurm_shell(environment)) {
        *way = HVDRUN_WAY_SRUN;
        return 0;
    }
    if (options->ranks == 0) {
        return hvd_fail(err, HVD_ERR_ARG, "how many ranks? hvdrun -np N %s",
                        options->command[0]);
    }
    if (is_remote && hvdrun_elastic_options_are_on(&options->elastic)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "mpirun ends all ranks when one fails, so elastic ranks on other "
                        "hosts (%s) need Slurm: srun --hvd=elastic",
                        options->hosts);
    }
    *way = is_remote ? HVDRUN_WAY_MPIRUN : HVDRUN_WAY_LOCAL;
    return 0;
}
