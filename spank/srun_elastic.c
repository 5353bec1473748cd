/* SPDX-License-Identifier: Apache-2.0 */
/* The service of an elastic job, which lives as long as srun does. */
#include "spank/srun_elastic.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"

enum {
    TIMEOUT_S = 600, /* as in Horovod */
    START_S = 60,
    RANKS_NO_LIMIT = 1000000,
    TEXT_BYTES = 256
};

static int seconds_of(const char *name, int fallback)
{
    const char *text = getenv(name);
    int seconds = text != NULL ? hvd_spank_number_of(text) : 0;

    return seconds > 0 ? seconds : fallback;
}

static int start(struct hvd_spank_plugin *plugin, int tasks)
{
    const struct hvd_spank_options *options = &plugin->options;
    const struct hvd_elastic_rules rules = {
        .np = tasks,
        .min = options->min_ranks > 0 ? options->min_ranks : 1,
        .max = options->max_ranks > 0 ? options->max_ranks : RANKS_NO_LIMIT,
        .start_s = seconds_of(HVD_ENV_START_TIMEOUT, START_S),
        .timeout_s = seconds_of(HVD_ENV_ELASTIC_TIMEOUT, TIMEOUT_S),
        .reset_limit = options->reset_limit,
    };

    if (options->min_ranks > tasks) {
        return hvd_fail(&plugin->refusal, HVD_ERR_ARG,
                        "--hvd=elastic,min=%d, but this step has %d tasks",
                        options->min_ranks, tasks);
    }
    plugin->srun.elastic.owner = getpid();
    return hvd_elastic_start(plugin->elastic_program, &rules,
                             &plugin->srun.elastic.service, &plugin->refusal);
}

/* --- meet=FILE ----------------------------------------------------------------------------
 * "HOST:PORT:KEY" in a file that only the user can read. */

/* Whether a service listens there. It ends with its srun; when srun was killed, the file stays. */
static bool is_alive(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct timeval limit = {.tv_sec = 5};
    struct addrinfo *found = NULL;
    char host[TEXT_BYTES];
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

/* The address in the file; false when there is none, or no service listens there. */
static bool read_address(const char *path, char address[TEXT_BYTES])
{
    FILE *file = fopen(path, "re");
    bool has_line = file != NULL && fgets(address, TEXT_BYTES, file) != NULL;

    if (file != NULL) {
        fclose(file);
    }
    if (has_line) {
        address[strcspn(address, "\n")] = '\0';
    }
    return has_line && is_alive(address);
}

/* Writes another file and renames it, so that no srun reads half an address. */
static int write_address(struct hvd_spank_plugin *plugin)
{
    const char *path = plugin->options.meet;
    char beside[sizeof(plugin->options.meet) + 32];
    char host[TEXT_BYTES] = "";
    int fd;
    bool is_good;

    gethostname(host, sizeof(host) - 1);
    snprintf(beside, sizeof(beside), "%s.%d", path, (int)getpid());
    (void)unlink(beside);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    is_good = fd >= 0 &&
              dprintf(fd, "%s:%s\n", host, plugin->srun.elastic.service.address) > 0 &&
              rename(beside, path) == 0;
    if (!is_good) {
        hvd_fail(&plugin->refusal, HVD_ERR_SYS,
                 "cannot write the file of --hvd=elastic,meet=%s: %m", path);
        (void)unlink(beside);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_good ? 0 : HVD_ERR_SYS;
}

/* --- in srun ----------------------------------------------------------------------------- */

int hvd_spank_srun_elastic_start(struct hvd_spank_plugin *plugin, int tasks)
{
    const char *meet = plugin->options.meet;
    char address[TEXT_BYTES];
    int status;

    if (!plugin->options.is_elastic || plugin->srun.elastic.service.pid > 0) {
        return 0; /* a further component of a heterogeneous step */
    }
    if (meet[0] != '\0' && read_address(meet, address)) {
        return setenv(HVD_ENV_ELASTIC_STEP, address, 1);
    }
    status = start(plugin, tasks);
    if (status == 0) {
        status = setenv(HVD_ENV_ELASTIC_STEP, plugin->srun.elastic.service.address, 1);
    }
    return status == 0 && meet[0] != '\0' ? write_address(plugin) : status;
}

void hvd_spank_srun_elastic_stop(struct hvd_spank_plugin *plugin)
{
    if (plugin->srun.elastic.service.pid > 0 && plugin->srun.elastic.owner == getpid()) {
        if (plugin->options.meet[0] != '\0') {
            (void)unlink(plugin->options.meet);
        }
        hvd_elastic_stop(&plugin->srun.elastic.service);
    }
}
