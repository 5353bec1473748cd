/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and setting srun's own options while it parses its command line. */
#include "spank/settings.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spank/counts.h"

static const char *const names[HVD_SETTING_COUNT] = {
    [HVD_SETTING_MPI] = "mpi",           [HVD_SETTING_KILL] = "kill-on-bad-exit",
    [HVD_SETTING_GPU_BIND] = "gpu-bind", [HVD_SETTING_TASKS_PER_NODE] = "ntasks-per-node",
    [HVD_SETTING_TASKS] = "ntasks",      [HVD_SETTING_CPUS_PER_TASK] = "cpus-per-task",
    [HVD_SETTING_NO_KILL] = "no-kill",   [HVD_SETTING_WAIT] = "wait",
};

bool hvd_settings_find(struct hvd_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->options = dlsym(RTLD_DEFAULT, "opt");
    settings->is_set =
        (bool (*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_isset");
    settings->get =
        (char *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_get");
    settings->set = (int (*)(void *, const char *, const char *, bool))dlsym(
        RTLD_DEFAULT, "slurm_option_set");
    settings->reset =
        (bool (*)(void *, const char *))dlsym(RTLD_DEFAULT, "slurm_option_reset");
    if (settings->options == NULL || settings->is_set == NULL || settings->get == NULL ||
        settings->set == NULL || settings->reset == NULL) {
        memset(settings, 0, sizeof(*settings));
        return false;
    }
    return true;
}

bool hvd_settings_has(const struct hvd_settings *settings, const char *name)
{
    return settings->options != NULL && settings->is_set(settings->options, name);
}

/* srun's text is on a heap of its own that a plugin cannot free: a few bytes stay. */
static const char *text_of(const struct hvd_settings *settings, const char *name)
{
    const char *text =
        settings->options != NULL ? settings->get(settings->options, name) : NULL;

    return text != NULL ? text : "";
}

void hvd_settings_get(const struct hvd_settings *settings, const char *name, char *value,
                      size_t bytes)
{
    snprintf(value, bytes, "%s",
             hvd_settings_has(settings, name) ? text_of(settings, name) : "");
}

int hvd_settings_number(const struct hvd_settings *settings, const char *name)
{
    return hvd_number_of(text_of(settings, name));
}

bool hvd_settings_offer(struct hvd_settings *settings, enum hvd_setting setting,
                        const char *value)
{
    const char *name = names[setting];

    if (settings->options == NULL || hvd_settings_has(settings, name) ||
        settings->set(settings->options, name, value, false) != 0) {
        return false;
    }
    hvd_settings_get(settings, name, settings->made[setting],
                     sizeof(settings->made[setting]));
    return true;
}

static bool is_made(const struct hvd_settings *settings, enum hvd_setting setting)
{
    char now[sizeof(settings->made[setting])];

    hvd_settings_get(settings, names[setting], now, sizeof(now));
    return now[0] != '\0' && strcmp(settings->made[setting], now) == 0;
}

bool hvd_settings_made(const struct hvd_settings *settings, const char *name)
{
    for (int i = 0; i < HVD_SETTING_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return is_made(settings, i);
        }
    }
    return false;
}

void hvd_settings_withdraw(struct hvd_settings *settings)
{
    for (int i = 0; i < HVD_SETTING_COUNT; i++) {
        if (is_made(settings, i)) {
            settings->reset(settings->options, names[i]);
        }
        settings->made[i][0] = '\0';
    }
}

/* Slurm keeps its plugins beside the library that holds the option functions. */
bool hvd_settings_know_pmix(const struct hvd_settings *settings)
{
    char path[PATH_MAX];
    Dl_info library;
    const char *slash;

    if (settings->options == NULL || dladdr((void *)settings->set, &library) == 0) {
        return true;
    }
    slash = strrchr(library.dli_fname, '/');
    if (slash == NULL) {
        return true;
    }
    snprintf(path, sizeof(path), "%.*s/mpi_pmix.so", (int)(slash - library.dli_fname),
             library.dli_fname);
    return access(path, R_OK) == 0;
}
