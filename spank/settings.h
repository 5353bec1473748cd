/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and setting srun's own options while it parses its command line.
 *
 * SPANK has no call for this. srun exports the functions that it uses itself, with the same
 * names and arguments from Slurm 22.05 to 26.05; where one is missing, hvd does without. */
#ifndef HVD_SPANK_SETTINGS_H
#define HVD_SPANK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

/* The options that hvd sets when the user did not. */
enum hvd_setting {
    HVD_SETTING_MPI,
    HVD_SETTING_KILL,
    HVD_SETTING_NO_KILL,
    HVD_SETTING_WAIT,
    HVD_SETTING_GPU_BIND,
    HVD_SETTING_TASKS_PER_NODE,
    HVD_SETTING_TASKS,
    HVD_SETTING_CPUS_PER_TASK,
    HVD_SETTING_COUNT,
};

struct hvd_settings {
    void *options; /* srun's record; NULL where way in is missing */
    bool (*is_set)(void *options, const char *name);
    char *(*get)(void *options, const char *name);
    int (*set)(void *options, const char *name, const char *value, bool early);
    bool (*reset)(void *options, const char *name);
    char made[HVD_SETTING_COUNT]
             [32]; /* what hvd set, as srun spells it; empty: nothing */
};

/* Finds srun's functions. False when one is missing; settings is then zeroed and every
 * function below answers "not set" and does nothing. */
bool hvd_settings_find(struct hvd_settings *settings);

/* True when the user, the environment or hvd set the option of this name. */
bool hvd_settings_has(const struct hvd_settings *settings, const char *name);

/* Writes the option's value as text, "" when it is not set. */
void hvd_settings_get(const struct hvd_settings *settings, const char *name, char *value,
                      size_t bytes);

/* srun's number of that name, set or computed; 0 when there is none. */
int hvd_settings_number(const struct hvd_settings *settings, const char *name);

/* Sets what is not set yet and remembers it. True when it is now hvd's. */
bool hvd_settings_offer(struct hvd_settings *settings, enum hvd_setting setting,
                        const char *value);

/* True when the option of this name has the value that hvd set. */
bool hvd_settings_made(const struct hvd_settings *settings, const char *name);

/* Resets what hvd set, except what the user changed since. */
void hvd_settings_withdraw(struct hvd_settings *settings);

/* True when Slurm's plugins include one for PMIx; also true when nobody can tell. */
bool hvd_settings_know_pmix(const struct hvd_settings *settings);

#endif
