/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/allocation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/hvdrun/batch_hosts.h"
#include "pmix_boot/hvdrun/launcher.h"
#include "pmix_boot/launch_env.h"

struct batch_source {
    const char *variable; /* contains the list, or the path of a file with it */
    bool is_file;
    bool is_lsf;
    enum hvdrun_batch_form form;
};

/* The first one that is set decides. */
static const struct batch_source sources[] = {
    {HVD_ENV_LSF_HOSTFILE, true, true, HVDRUN_HOST_PER_SLOT},
    {HVD_ENV_LSF_HOSTS, false, true, HVDRUN_HOST_SLOT_PAIRS},
    {HVD_ENV_PBS_NODEFILE, true, false, HVDRUN_HOST_PER_SLOT},
    {HVD_ENV_GRID_HOSTFILE, true, false, HVDRUN_HOST_AND_SLOTS},
};

/* --- the environment ---------------------------------------------------------------- */

static const char *find_value(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=' &&
            (*environment)[length + 1] != '\0') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

static const struct batch_source *find_source(const char *const *environment)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (find_value(environment, sources[i].variable) != NULL) {
            return &sources[i];
        }
    }
    return NULL;
}

/* Returns the contents of a file, which the caller frees, or NULL with errno. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    ssize_t bytes;

    if (file == NULL) {
        return NULL;
    }
    /* Reads up to the end of the file: a list contains no '\0'. */
    bytes = getdelim(&text, &room, '\0', file);
    if (bytes < 0 && !ferror(file)) {
        free(text);
        text = strdup("");
    } else if (bytes < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Reads the hosts of a source. Returns their number; 0: the file is not there, and the
 * number of ranks is known without it. name: the variable, with its file, for errors. */
static int read_source(const struct batch_source *source, const char *value,
                       const char *name, bool has_ranks, struct hvdrun_host **hosts,
                       struct hvd_error *err)
{
    char *text;
    int count;

    if (!source->is_file) {
        return hvdrun_batch_hosts_parse(name, value, source->form, hosts, err);
    }
    text = read_file(value);
    if (text == NULL && errno == ENOENT && has_ranks) {
        hvd_log(HVD_LOG_WARN,
                "%s does not exist here, as in some containers: all ranks start on this "
                "machine; name hosts with -H",
                name);
        return 0;
    }
    if (text == NULL) {
        (void)hvd_fail(err, HVD_ERR_ARG,
                       "cannot read %s, which lists the hosts of this job: %m; name the "
                       "hosts with -H, or run hvdrun in the job's script",
                       name);
        return HVD_ERR_ARG;
    }
    count = hvdrun_batch_hosts_parse(name, text, source->form, hosts, err);
    free(text);
    return count;
}

/* --- the options -------------------------------------------------------------------- */

static int count_slots(const struct hvdrun_host *hosts, int count)
{
    int slots = 0;

    for (int i = 0; i < count && slots < HVDRUN_MOST_SLOTS; i++) {
        slots += hosts[i].slots;
    }
    return slots < HVDRUN_MOST_SLOTS ? slots : HVDRUN_MOST_SLOTS;
}

/* Writes the first hosts that have room for all ranks as -H takes them. */
static int set_hosts(struct hvdrun_options *options, const struct hvdrun_host *hosts,
                     int count, struct hvd_error *err)
{
    size_t bytes;
    FILE *out = open_memstream(&options->hosts, &bytes);
    int left = options->ranks;

    for (int i = 0; out != NULL && i < count && left > 0; i++) {
        fprintf(out, "%s%s:%d", i > 0 ? "," : "", hosts[i].name, hosts[i].slots);
        left -= hosts[i].slots;
    }
    if (out == NULL || fclose(out) != 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d hosts", count);
    }
    return 0;
}

static int use_hosts(struct hvdrun_options *options, const char *name,
                     struct hvdrun_host *hosts, int count, struct hvd_error *err)
{
    int slots = count_slots(hosts, count);

    if (options->ranks == 0) {
        options->ranks = slots;
        hvd_log(HVD_LOG_WARN, "starting %d ranks without -np: %s has %d slots on %d %s",
                slots, name, slots, count, count == 1 ? "host" : "hosts");
    }
    /* Jobs for one host often ask for cores or GPUs, not for slots. */
    if (count == 1 && hosts[0].slots < options->ranks) {
        hosts[0].slots = options->ranks;
        slots = options->ranks;
    }
    if (options->ranks > slots) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "-np %d: %s has only %d slots on %d hosts; request more, or name "
                        "hosts and ranks with -H HOST:N,...",
                        options->ranks, name, slots, count);
    }
    return set_hosts(options, hosts, count, err);
}

/* jsrun's clusters list the node of the job's script, too, which is not for ranks. */
static int check_jsrun(const struct batch_source *source,
                       const struct hvdrun_options *options, struct hvd_error *err)
{
    char path[4096];

    if (!source->is_lsf || !hvdrun_find_in_path("jsrun", path, sizeof(path))) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "this LSF job has %s: start the ranks with it, such as jsrun -n N -g "
                    "1 %s; or name hosts with -H",
                    path, options->command[0]);
}

int hvdrun_allocation_apply(struct hvdrun_options *options,
                            const char *const *environment, struct hvd_error *err)
{
    const struct batch_source *source = find_source(environment);
    struct hvdrun_host *hosts;
    const char *value;
    char name[4200];
    int count;

    /* hvdrun starts the ranks of an elastic job on this machine */
    if (source == NULL || options->hosts != NULL || hvdrun_options_is_elastic(options) ||
        hvd_launch_is_slurm_shell(environment) || hvd_launch_has_launcher(environment)) {
        return 0;
    }
    count = check_jsrun(source, options, err);
    if (count < 0) {
        return count;
    }
    value = find_value(environment, source->variable);
    snprintf(name, sizeof(name), "%s%s%s", source->variable, source->is_file ? " " : "",
             source->is_file ? value : "");
    count = read_source(source, value, name, options->ranks > 0, &hosts, err);
    if (count > 0) {
        count = use_hosts(options, name, hosts, count, err);
        free(hosts);
    }
    return count;
}
