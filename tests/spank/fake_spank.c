/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for srun and slurmstepd. */
#include "tests/spank/fake_spank.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu_binding/base/attr.h"

enum {
    PAIRS_MAX = 64
};

struct pairs {
    int count;
    char *names[PAIRS_MAX];
    char *values[PAIRS_MAX];
};

enum {
    MESSAGES_BYTES = 8192
};

enum spank_context fake_context;
struct fake_step fake_step;
char *fake_messages;
struct spank_option *fake_registered;

static const char *broken_name; /* see fake_break_getenv */
static spank_err_t broken_error;

static struct pairs environment;
static struct pairs options;

static int find(const struct pairs *pairs, const char *name)
{
    for (int i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static void put(struct pairs *pairs, const char *name, const char *value)
{
    int i = find(pairs, name);

    if (i < 0) {
        i = pairs->count++;
        pairs->names[i] = strdup(name);
    } else {
        free(pairs->values[i]);
    }
    pairs->values[i] = strdup(value);
}

static void drop(struct pairs *pairs, const char *name)
{
    int i = find(pairs, name);

    if (i >= 0) {
        free(pairs->names[i]);
        free(pairs->values[i]);
        pairs->count--;
        pairs->names[i] = pairs->names[pairs->count];
        pairs->values[i] = pairs->values[pairs->count];
    }
}

static const char *get(const struct pairs *pairs, const char *name)
{
    int i = find(pairs, name);

    return i < 0 ? NULL : pairs->values[i];
}

void fake_reset(enum spank_context context)
{
    while (environment.count > 0) {
        drop(&environment, environment.names[0]);
    }
    while (options.count > 0) {
        drop(&options, options.names[0]);
    }
    memset(&fake_step, 0, sizeof(fake_step));
    if (fake_messages == NULL) {
        fake_messages = mmap(NULL, MESSAGES_BYTES, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    fake_messages[0] = '\0';
    fake_registered = NULL;
    fake_context = context;
    broken_name = NULL;
}

void fake_step_setenv(const char *name, const char *value)
{
    put(&environment, name, value);
}

const char *fake_step_getenv(const char *name)
{
    return get(&environment, name);
}

int fake_step_env_count(void)
{
    return environment.count;
}

void fake_break_getenv(const char *name, spank_err_t error)
{
    broken_name = name;
    broken_error = error;
}

void fake_type_option(const char *name, const char *value)
{
    put(&options, name, value);
}

const char *fake_option(const char *name)
{
    return get(&options, name);
}

int fake_option_count(void)
{
    return options.count;
}

static spank_f *symbol(const struct fake_plugin *plugin, const char *name)
{
    return (spank_f *)dlsym(plugin->handle, name);
}

void fake_load(struct fake_plugin *plugin, const char *path)
{
    plugin->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin->handle == NULL) {
        printf("Bail out! %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    plugin->init = symbol(plugin, "slurm_spank_init");
    plugin->init_post_opt = symbol(plugin, "slurm_spank_init_post_opt");
    plugin->local_user_init = symbol(plugin, "slurm_spank_local_user_init");
    plugin->user_init = symbol(plugin, "slurm_spank_user_init");
    plugin->task_init = symbol(plugin, "slurm_spank_task_init");
    plugin->exit = symbol(plugin, "slurm_spank_exit");
}

void fake_unload(struct fake_plugin *plugin)
{
    dlclose(plugin->handle);
}

/* --- functions that Slurm offers to plugins --- */

spank_context_t spank_context(void)
{
    return fake_context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    (void)spank;
    fake_registered = option;
    return ESPANK_SUCCESS;
}

static spank_err_t get_task_item(spank_item_t item, va_list arguments)
{
    switch (item) {
    case S_TASK_ID:
        *va_arg(arguments, int *) = fake_step.local_rank;
        return ESPANK_SUCCESS;
    case S_TASK_GLOBAL_ID:
        *va_arg(arguments, uint32_t *) = fake_step.rank;
        return ESPANK_SUCCESS;
    case S_JOB_ARGV:
        *va_arg(arguments, int *) = fake_step.words;
        *va_arg(arguments, char ***) = fake_step.command;
        return ESPANK_SUCCESS;
    case S_STEP_ALLOC_CORES:
        *va_arg(arguments, const char **) = fake_step.cores;
        return fake_step.cores != NULL ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
    default:
        return ESPANK_BAD_ARG;
    }
}

static spank_err_t get_item(spank_item_t item, va_list arguments)
{
    const struct {
        spank_item_t item;
        uint32_t value;
    } numbers[] = {
        {S_JOB_STEPID, fake_step.step_id},
        {S_JOB_NNODES, fake_step.nodes},
        {S_JOB_NODEID, fake_step.node},
        {S_JOB_TOTAL_TASK_COUNT, fake_step.tasks},
        {S_JOB_LOCAL_TASK_COUNT, fake_step.local_tasks},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].item == item) {
            *va_arg(arguments, uint32_t *) = numbers[i].value;
            return ESPANK_SUCCESS;
        }
    }
    return get_task_item(item, arguments);
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list arguments;
    spank_err_t rc;

    (void)spank;
    va_start(arguments, item);
    rc = get_item(item, arguments);
    va_end(arguments);
    return rc;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *buffer, int bytes)
{
    const char *value = get(&environment, name);

    (void)spank;
    if (broken_name != NULL && strcmp(name, broken_name) == 0) {
        return broken_error;
    }
    if (value == NULL) {
        return ESPANK_ENV_NOEXIST;
    }
    return snprintf(buffer, (size_t)bytes, "%s", value) < bytes ? ESPANK_SUCCESS
                                                                : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value,
                         int overwrite)
{
    (void)spank;
    if (find(&environment, name) >= 0 && !overwrite) {
        return ESPANK_ENV_EXISTS;
    }
    put(&environment, name, value);
    return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
    (void)spank;
    drop(&environment, name);
    return ESPANK_SUCCESS;
}

const char *spank_strerror(spank_err_t error)
{
    return error == ESPANK_NOT_TASK ? "Not in task context" : "Unknown";
}

static void say(const char *kind, const char *format, va_list arguments) HVD_PRINTF(2, 0);

static void say(const char *kind, const char *format, va_list arguments)
{
    size_t used = strlen(fake_messages);

    used += (size_t)snprintf(fake_messages + used, MESSAGES_BYTES - used, "%s", kind);
    if (used < MESSAGES_BYTES) {
        used += (size_t)vsnprintf(fake_messages + used, MESSAGES_BYTES - used, format,
                                  arguments);
    }
    if (used + 1 < MESSAGES_BYTES) {
        memcpy(fake_messages + used, "\n", 2);
    }
}

void slurm_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("error: ", format, arguments);
    va_end(arguments);
}

void slurm_info(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

/* --- functions that srun exports; left out by FAKE_WITHOUT_OPTIONS --- */

#ifndef FAKE_WITHOUT_OPTIONS
int opt;
bool slurm_option_isset(void *record, const char *name);
char *slurm_option_get(void *record, const char *name);
int slurm_option_set(void *record, const char *name, const char *value, bool early);
bool slurm_option_reset(void *record, const char *name);

bool slurm_option_isset(void *record, const char *name)
{
    return record == &opt && find(&options, name) >= 0;
}

char *slurm_option_get(void *record, const char *name)
{
    int at = find(&options, name);

    return record == &opt && at >= 0 ? options.values[at] : NULL;
}

int slurm_option_set(void *record, const char *name, const char *value, bool early)
{
    (void)early;
    put(&options, name, value);
    return record == &opt ? 0 : -1;
}

bool slurm_option_reset(void *record, const char *name)
{
    drop(&options, name);
    return record == &opt;
}
#endif
