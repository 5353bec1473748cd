/* SPDX-License-Identifier: Apache-2.0 */
/* Sets environment variables of a task. */
#include "spank/task_variables.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/exported.h"
#include "spank/task_init.h"

void hvd_spank_task_record(void *spank, const char *name, const char *value)
{
    char text[HVD_EXPORTED_BYTES] = "";

    spank_getenv(spank, HVD_ENV_EXPORTED, text, sizeof(text));
    hvd_exported_add(text, name, value);
    spank_setenv(spank, HVD_ENV_EXPORTED, text, true);
}

bool hvd_spank_task_step_name(const struct hvd_spank_task *task,
                              char name[HVD_SPANK_STEP_BYTES])
{
    char job[HVD_SPANK_STEP_BYTES];
    char step[HVD_SPANK_STEP_BYTES];

    return spank_getenv(task->spank, HVD_ENV_SLURM_JOB, job, sizeof(job)) ==
               ESPANK_SUCCESS &&
           spank_getenv(task->spank, HVD_ENV_SLURM_STEP, step, sizeof(step)) ==
               ESPANK_SUCCESS &&
           snprintf(name, HVD_SPANK_STEP_BYTES, "%s.%s", job, step) <
               HVD_SPANK_STEP_BYTES;
}

int hvd_spank_task_setenv(void *spank, const char *name, const char *value,
                          bool overwrite)
{
    int rc = (int)spank_setenv(spank, name, value, overwrite);

    if (rc == ESPANK_SUCCESS) {
        hvd_spank_task_record(spank, name, value);
    }
    return rc == ESPANK_ENV_EXISTS ? 0 : rc;
}

void hvd_spank_task_unsetenv(void *spank, const char *name)
{
    char text[HVD_EXPORTED_BYTES] = "";

    spank_unsetenv(spank, name);
    spank_getenv(spank, HVD_ENV_EXPORTED, text, sizeof(text));
    hvd_exported_remove(text, name);
    spank_setenv(spank, HVD_ENV_EXPORTED, text, true);
}

void hvd_spank_task_export_number(const struct hvd_spank_task *task, const char *name,
                                  int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    hvd_spank_task_setenv(task->spank, name, text, false);
}

void hvd_spank_task_set_default(const struct hvd_spank_task *task, const char *name,
                                const char *value)
{
    char names[512] = "";
    char longer[sizeof(names)];
    int length;

    if (spank_setenv(task->spank, name, value, false) != ESPANK_SUCCESS) {
        return;
    }
    hvd_spank_task_record(task->spank, name, value);
    spank_getenv(task->spank, HVD_ENV_DEFAULTS, names, sizeof(names));
    length = snprintf(longer, sizeof(longer), "%s%s%s", names,
                      names[0] != '\0' ? "," : "", name);
    if (length < (int)sizeof(longer)) {
        spank_setenv(task->spank, HVD_ENV_DEFAULTS, longer, true);
    }
}
