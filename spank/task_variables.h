/* SPDX-License-Identifier: Apache-2.0 */
/* Sets environment variables of a task, and records them in HVD_EXPORTED. */
#ifndef HVD_SPANK_TASK_VARIABLES_H
#define HVD_SPANK_TASK_VARIABLES_H

#include <stdbool.h>

struct hvd_spank_task;

enum {
    HVD_SPANK_STEP_BYTES = 32
};

/* Writes the step as JOB.STEP. A variable that contains it can be told from one that a
 * rank's own steps inherit. Returns false if Slurm has not set both numbers. */
bool hvd_spank_task_step_name(const struct hvd_spank_task *task,
                              char name[HVD_SPANK_STEP_BYTES]);

/* Sets a variable of the task. If overwrite is false, an existing variable stays, which
 * is no failure. It is a hvd_env_setter with the spank handle as its context. */
int hvd_spank_task_setenv(void *spank, const char *name, const char *value,
                          bool overwrite);

/* Removes a variable of the task. */
void hvd_spank_task_unsetenv(void *spank, const char *name);

/* Records the value of a variable. For PYTHONPATH, hvd's directory is enough: see
 * hvd_exported_matches. */
void hvd_spank_task_record(void *spank, const char *name, const char *value);

/* Sets a variable of the task to a number, unless it exists. */
void hvd_spank_task_export_number(const struct hvd_spank_task *task, const char *name,
                                  int value);

/* Sets a variable of the task unless it exists, and adds it to HVD_DEFAULTS, so that an
 * srun inside the task knows that the user did not set it. */
void hvd_spank_task_set_default(const struct hvd_spank_task *task, const char *name,
                                const char *value);

#endif
