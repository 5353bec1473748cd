/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous service of a step, which lives as long as srun does. */
#include "spank/srun_rendezvous.h"

#include <dlfcn.h>
#include <netdb.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "spank/plugin.h"
#include "spank/rendezvous_file.h"
#include "spank/slurm_numbers.h"

enum {
    TIMEOUT_S = 600, /* Horovod's default */
    START_S = 60,
    RANKS_NO_LIMIT = 1000000,
    PORTS_BYTES = 64
};

static int seconds_of(const char *name, int fallback)
{
    const char *text = getenv(name);
    int seconds = text != NULL ? hvd_spank_number_of(text) : 0;

    return seconds > 0 ? seconds : fallback;
}

/* Writes the range of TCP ports that the cluster's firewall leaves open on the machine of
 * srun, as "FIRST-LAST": HVD_PORT_RANGE, else SrunPortRange of slurm.conf, else an empty
 * text, which allows any port. Plugins have no function that returns SrunPortRange, but
 * srun exports the structure that holds slurm.conf. Its layout differs between releases
 * of Slurm, but the plugin is built for one release. */
static void find_ports(char text[PORTS_BYTES])
{
    const char *chosen = getenv(HVD_ENV_PORT_RANGE);
    const slurm_conf_t *conf = dlsym(RTLD_DEFAULT, "slurm_conf");

    text[0] = '\0';
    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(text, PORTS_BYTES, "%s", chosen);
    } else if (conf != NULL && conf->srun_port_range != NULL) {
        snprintf(text, PORTS_BYTES, "%u-%u", (unsigned)conf->srun_port_range[0],
                 (unsigned)conf->srun_port_range[1]);
    }
}

static int start_program(struct hvd_spank_plugin *plugin,
                         const struct hvd_rendezvous_rules *rules)
{
    struct hvd_rendezvous_rules with_ports = *rules;
    char ports[PORTS_BYTES];

    find_ports(ports);
    with_ports.ports = ports;
    plugin->srun.rendezvous.owner = getpid();
    return hvd_rendezvous_start(plugin->rendezvous_program, &with_ports,
                                &plugin->srun.rendezvous.service, &plugin->refusal);
}

/* --- an elastic job --- */

/* Returns how many ranks train at most; further ones wait. */
static int most_ranks(const struct hvd_spank_options *options, int tasks)
{
    if (options->spares > 0) {
        return tasks - options->spares;
    }
    return options->max_ranks > 0 ? options->max_ranks : RANKS_NO_LIMIT;
}

static int start_elastic(struct hvd_spank_plugin *plugin, int tasks)
{
    const struct hvd_spank_options *options = &plugin->options;
    const struct hvd_rendezvous_rules rules = {
        .np = tasks,
        .min = options->min_ranks > 0 ? options->min_ranks : 1,
        .max = most_ranks(options, tasks),
        .start_s = seconds_of(HVD_ENV_START_TIMEOUT, START_S),
        .timeout_s = seconds_of(HVD_ENV_ELASTIC_TIMEOUT, TIMEOUT_S),
        .reset_limit = options->reset_limit,
    };

    if (rules.min + options->spares > tasks && options->spares == 0) {
        return hvd_fail(&plugin->refusal, HVD_ERR_ARG,
                        "--hvd=elastic,min=%d, but this step has %d task%s: use "
                        "--ntasks=%d, or a smaller min",
                        rules.min, tasks, hvd_number_plural(tasks), rules.min);
    }
    if (rules.min + options->spares > tasks) {
        return hvd_fail(
            &plugin->refusal, HVD_ERR_ARG,
            "--hvd=elastic,spares=%d, but this step has %d task%s, of which %d "
            "or more must train: use --ntasks=%d, or fewer spares",
            options->spares, tasks, hvd_number_plural(tasks), rules.min,
            rules.min + options->spares);
    }
    return start_program(plugin, &rules);
}

/* --- meet=FILE --- */

/* True if a service listens at the address. A service ends with its srun, but if srun was
 * killed, the file stays. */
static bool is_alive(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct timeval limit = {.tv_sec = 5};
    struct addrinfo *found = NULL;
    char host[HVD_SPANK_RENDEZVOUS_BYTES];
    char port[16];
    bool is_open = false;
    int fd;

    if (sscanf(address, "%200[^:]:%15[0-9]:", host, port) != 2 ||
        getaddrinfo(host, port, &hints, &found) != 0) {
        return false;
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        is_open = connect(fd, found->ai_addr, found->ai_addrlen) == 0;
        close(fd);
    }
    freeaddrinfo(found);
    return is_open;
}

/* Exports the address of the service to the tasks. */
static int export_address(struct hvd_spank_plugin *plugin, const char *address)
{
    if (setenv(HVD_ENV_RENDEZVOUS_STEP, address, 1) != 0) {
        return hvd_fail(
            &plugin->refusal, HVD_ERR_SYS,
            "cannot set " HVD_ENV_RENDEZVOUS_STEP
            " for the tasks of this step: %m: free memory on the machine of srun, or "
            "start the job from another one");
    }
    return 0;
}

/* Exports the address that the file names, if a service still listens there; *is_joined
 * tells whether one does. */
static int join_service(struct hvd_spank_plugin *plugin, bool *is_joined)
{
    char address[HVD_SPANK_RENDEZVOUS_BYTES];
    bool found = false;
    int status = hvd_spank_rendezvous_file_read(plugin->options.meet, address, &found,
                                                &plugin->refusal);

    *is_joined = status == 0 && found && is_alive(address);
    return *is_joined ? export_address(plugin, address) : status;
}

static int write_address(struct hvd_spank_plugin *plugin)
{
    char address[HVD_SPANK_RENDEZVOUS_BYTES];
    char host[HVD_SPANK_RENDEZVOUS_BYTES - HVD_RENDEZVOUS_START_TEXT_BYTES - 1] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(address, sizeof(address), "%s:%s", host,
             plugin->srun.rendezvous.service.address);
    return hvd_spank_rendezvous_file_write(plugin->options.meet, address,
                                           &plugin->refusal);
}

static int join_or_start(struct hvd_spank_plugin *plugin, int tasks)
{
    const bool has_file = plugin->options.meet[0] != '\0';
    bool is_joined = false;
    int status = 0;

    if (has_file) {
        status = join_service(plugin, &is_joined);
    }
    if (status != 0 || is_joined) {
        return status;
    }
    status = start_elastic(plugin, tasks);
    if (status == 0) {
        status = export_address(plugin, plugin->srun.rendezvous.service.address);
    }
    return status == 0 && has_file ? write_address(plugin) : status;
}

/* --- in srun --- */

/* True for all of Slurm's PMIx plugins: pmix, pmix_v4 and so on. */
static bool is_pmix(const char *mpi)
{
    return mpi != NULL && strncmp(mpi, "pmix", strlen("pmix")) == 0;
}

/* True with --async of Slurm 26.05: srun ends before its tasks, without launching them
 * itself, so local_user_init is not called. */
static bool ends_early(const struct hvd_spank_plugin *plugin)
{
    return hvd_spank_srun_options_has(&plugin->srun.options, "async");
}

int hvd_spank_srun_rendezvous_check(struct hvd_spank_plugin *plugin)
{
    const struct hvd_spank_srun *srun = &plugin->srun;
    char mpi[32];

    if (!ends_early(plugin)) {
        return 0;
    }
    if (plugin->options.is_elastic) {
        return hvd_fail(&plugin->refusal, HVD_ERR_UNSUPPORTED,
                        "with --async srun ends before its tasks, and the rendezvous "
                        "service of --hvd=elastic with it: leave out --async");
    }
    if (srun->components == 1 &&
        hvd_spank_srun_options_number(&srun->options, "ntasks") == 1) {
        return 0;
    }
    hvd_spank_srun_options_get(&srun->options, "mpi", mpi, sizeof(mpi));
    if (!is_pmix(mpi)) {
        return hvd_fail(&plugin->refusal, HVD_ERR_UNSUPPORTED,
                        "with --async srun ends before its tasks, and hvd's rendezvous "
                        "service with it: leave out --async, or use --mpi=pmix");
    }
    slurm_error("hvd: " HVD_ENV_MASTER_ADDRESS " and " HVD_ENV_MASTER_PORT
                " stay unset in this step, because --async ends hvd's rendezvous "
                "service: scripts of torch.distributed must set them");
    return 0;
}

/* Starts the service of a static job. tasks is 0 if it is not known yet. */
static int start_static(struct hvd_spank_plugin *plugin, int tasks)
{
    const struct hvd_rendezvous_rules rules = {.np = tasks};
    int status = 0;

    if (plugin->srun.rendezvous.service.pid <= 0) {
        status = start_program(plugin, &rules);
    }
    return status == 0 ? export_address(plugin, plugin->srun.rendezvous.service.address)
                       : status;
}

void hvd_spank_srun_rendezvous_prepare(struct hvd_spank_plugin *plugin)
{
    if (plugin->srun.components > 1 && !plugin->options.is_elastic &&
        !ends_early(plugin) && start_static(plugin, 0) != 0) {
        /* hvd_spank_srun_rendezvous_start tries again, and reports a failure */
        plugin->refusal = (struct hvd_error){0};
    }
}

int hvd_spank_srun_rendezvous_start(struct hvd_spank_plugin *plugin, int tasks)
{
    int status = 0;

    if (ends_early(plugin)) {
        return 0;
    }
    if (plugin->srun.rendezvous.service.pid > 0) {
        /* the service already runs: this is a later component of a heterogeneous step */
        return 0;
    }
    if (plugin->options.is_elastic) {
        return join_or_start(plugin, tasks);
    }
    if (tasks > 1 || plugin->srun.components > 1) {
        status = start_static(plugin, tasks);
    }
    if (status != 0 && is_pmix(getenv(HVD_ENV_SLURM_MPI_TYPE))) {
        /* Scripts of Horovod do not need the service if there is PMIx. */
        slurm_error("hvd: " HVD_ENV_MASTER_ADDRESS " and " HVD_ENV_MASTER_PORT
                    " stay unset in this step, so scripts of torch.distributed must set "
                    "them: %s",
                    plugin->refusal.text);
        plugin->refusal = (struct hvd_error){0};
        status = 0;
    }
    return status;
}

void hvd_spank_srun_rendezvous_stop(struct hvd_spank_plugin *plugin)
{
    if (plugin->srun.rendezvous.service.pid > 0 &&
        plugin->srun.rendezvous.owner == getpid()) {
        if (plugin->options.meet[0] != '\0') {
            (void)unlink(plugin->options.meet);
        }
        hvd_rendezvous_stop(&plugin->srun.rendezvous.service);
    }
}
