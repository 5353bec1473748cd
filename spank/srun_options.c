/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and sets srun's own options while it parses its command line. */
#include "spank/srun_options.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "spank/slurm_numbers.h"
#include "spank/slurm_pmix.h"

static const char *const names[HVD_SPANK_SRUN_COUNT] = {
    [HVD_SPANK_SRUN_MPI] = "mpi",
    [HVD_SPANK_SRUN_KILL_ON_BAD_EXIT] = "kill-on-bad-exit",
    [HVD_SPANK_SRUN_GPU_BIND] = "gpu-bind",
    [HVD_SPANK_SRUN_GPUS_PER_NODE] = "gpus-per-node",
    [HVD_SPANK_SRUN_TASKS_PER_NODE] = "ntasks-per-node",
    [HVD_SPANK_SRUN_TASKS] = "ntasks",
    [HVD_SPANK_SRUN_CPUS_PER_TASK] = "cpus-per-task",
    [HVD_SPANK_SRUN_NO_KILL] = "no-kill",
    [HVD_SPANK_SRUN_WAIT] = "wait",
};

bool hvd_spank_srun_options_find(struct hvd_spank_srun_options *srun_options)
{
    memset(srun_options, 0, sizeof(*srun_options));
    srun_options->options = dlsym(RTLD_DEFAULT, "opt");
    srun_options->is_set =
        (bool (*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_isset");
    srun_options->get =
        (char *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_get");
    srun_options->set = (int (*)(void *, const char *, const char *, bool))dlsym(
        RTLD_DEFAULT, "slurm_option_set");
    srun_options->reset =
        (bool (*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_reset");
    if (srun_options->options == NULL || srun_options->is_set == NULL ||
        srun_options->get == NULL || srun_options->set == NULL ||
        srun_options->reset == NULL) {
        memset(srun_options, 0, sizeof(*srun_options));
        return false;
    }
    return true;
}

bool hvd_spank_srun_options_has(const struct hvd_spank_srun_options *srun_options,
                                const char *name)
{
    return srun_options->options != NULL &&
           srun_options->is_set(srun_options->options, name);
}

/* Returns the option's text, never NULL. srun allocates it from its own heap, where a
 * plugin cannot free it, so a few bytes leak. */
static const char *text_of(const struct hvd_spank_srun_options *srun_options,
                           const char *name)
{
    const char *text = srun_options->options != NULL
                           ? srun_options->get(srun_options->options, name)
                           : NULL;

    return text != NULL ? text : "";
}

void hvd_spank_srun_options_get(const struct hvd_spank_srun_options *srun_options,
                                const char *name, char *value, size_t bytes)
{
    snprintf(value, bytes, "%s",
             hvd_spank_srun_options_has(srun_options, name) ? text_of(srun_options, name)
                                                            : "");
}

int hvd_spank_srun_options_number(const struct hvd_spank_srun_options *srun_options,
                                  const char *name)
{
    return hvd_spank_number_of(text_of(srun_options, name));
}

bool hvd_spank_srun_options_set_default(struct hvd_spank_srun_options *srun_options,
                                        enum hvd_spank_srun_option option,
                                        const char *value)
{
    const char *name = names[option];

    if (srun_options->options == NULL || hvd_spank_srun_options_has(srun_options, name) ||
        srun_options->set(srun_options->options, name, value, false) != 0) {
        return false;
    }
    hvd_spank_srun_options_get(srun_options, name, srun_options->defaults[option],
                               sizeof(srun_options->defaults[option]));
    return true;
}

static bool is_default(const struct hvd_spank_srun_options *srun_options,
                       enum hvd_spank_srun_option option)
{
    char now[sizeof(srun_options->defaults[option])];

    hvd_spank_srun_options_get(srun_options, names[option], now, sizeof(now));
    return now[0] != '\0' && strcmp(srun_options->defaults[option], now) == 0;
}

bool hvd_spank_srun_options_is_default(const struct hvd_spank_srun_options *srun_options,
                                       const char *name)
{
    for (int i = 0; i < HVD_SPANK_SRUN_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return is_default(srun_options, i);
        }
    }
    return false;
}

void hvd_spank_srun_options_reset(struct hvd_spank_srun_options *srun_options)
{
    for (int i = 0; i < HVD_SPANK_SRUN_COUNT; i++) {
        if (is_default(srun_options, i)) {
            srun_options->reset(srun_options->options, names[i]);
        }
        srun_options->defaults[i][0] = '\0';
    }
}

/* Slurm keeps its plugins beside the library that holds the option functions. */
bool hvd_spank_srun_options_know_pmix(const struct hvd_spank_srun_options *srun_options)
{
    char path[PATH_MAX];
    Dl_info library;
    const char *slash;

    if (srun_options->options == NULL ||
        dladdr((void *)srun_options->set, &library) == 0) {
        return true;
    }
    slash = strrchr(library.dli_fname, '/');
    if (slash == NULL) {
        return true;
    }
    snprintf(path, sizeof(path), "%.*s/mpi_pmix.so", (int)(slash - library.dli_fname),
             library.dli_fname);
    return hvd_spank_slurm_pmix_works(path);
}
