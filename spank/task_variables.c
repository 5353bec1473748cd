/* SPDX-License-Identifier: Apache-2.0 */
/* Sets environment variables of a task. */
#include "spank/task_variables.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>

#include "gpu_binding/base/env.h"
#include "spank/task_init.h"

int hvd_spank_task_setenv(void *spank, const char *name, const char *value,
                          bool overwrite)
{
    int rc = (int)spank_setenv(spank, name, value, overwrite);

    return rc == ESPANK_ENV_EXISTS ? 0 : rc;
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

    if ((int)spank_setenv(task->spank, name, value, false) != 0) {
        return;
    }
    spank_getenv(task->spank, HVD_ENV_DEFAULTS, names, sizeof(names));
    length = snprintf(longer, sizeof(longer), "%s%s%s", names,
                      names[0] != '\0' ? "," : "", name);
    if (length < (int)sizeof(longer)) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_DEFAULTS, longer, true);
    }
}
