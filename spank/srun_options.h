/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and sets srun's own options while it parses its command line.
 *
 * SPANK has no call for this. srun exports the functions that it uses itself, with the
 * same names and arguments from Slurm 22.05 to 26.05; if one is missing, hvd works
 * without them. */
#ifndef HVD_SPANK_SRUN_OPTIONS_H
#define HVD_SPANK_SRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The options that hvd sets when the user did not. */
enum hvd_spank_srun_option {
    HVD_SPANK_SRUN_MPI,
    HVD_SPANK_SRUN_KILL_ON_BAD_EXIT,
    HVD_SPANK_SRUN_NO_KILL,
    HVD_SPANK_SRUN_WAIT,
    HVD_SPANK_SRUN_GPU_BIND,
    HVD_SPANK_SRUN_GPUS_PER_NODE,
    HVD_SPANK_SRUN_TASKS_PER_NODE,
    HVD_SPANK_SRUN_TASKS,
    HVD_SPANK_SRUN_CPUS_PER_TASK,
    HVD_SPANK_SRUN_COUNT,
};

struct hvd_spank_srun_options {
    void *options; /* srun's record; NULL: its functions were not found */
    bool (*is_set)(void *options, const char *name);
    char *(*get)(void *options, const char *name);
    int (*set)(void *options, const char *name, const char *value, bool early);
    bool (*reset)(void *options, const char *name);
    /* The values that hvd set, as srun writes them; empty if it set none. */
    char defaults[HVD_SPANK_SRUN_COUNT][32];
};

/* Finds srun's functions. False when one is missing; srun_options is then zeroed and
 * every function below answers "not set" and does nothing. */
bool hvd_spank_srun_options_find(struct hvd_spank_srun_options *srun_options);

/* True when the user, the environment or hvd set the option of this name. */
bool hvd_spank_srun_options_has(const struct hvd_spank_srun_options *srun_options,
                                const char *name);

/* Writes the option's value as text, "" when it is not set. */
void hvd_spank_srun_options_get(const struct hvd_spank_srun_options *srun_options,
                                const char *name, char *value, size_t bytes);

/* Returns the number in the option of that name, whether it was set or srun computed it;
 * 0 if there is none. */
int hvd_spank_srun_options_number(const struct hvd_spank_srun_options *srun_options,
                                  const char *name);

/* Sets an option that is not set yet, and remembers the value as hvd's default. Returns
 * false if the option was set already or srun rejects the value. */
bool hvd_spank_srun_options_set_default(struct hvd_spank_srun_options *srun_options,
                                        enum hvd_spank_srun_option option,
                                        const char *value);

/* True when the option of this name has the value that hvd set. */
bool hvd_spank_srun_options_is_default(const struct hvd_spank_srun_options *srun_options,
                                       const char *name);

/* Resets the options that hvd set, except those that the user has changed since. */
void hvd_spank_srun_options_reset(struct hvd_spank_srun_options *srun_options);

/* True when Slurm's plugins include one for PMIx that finds its library; also true when
 * that cannot be found out. */
bool hvd_spank_srun_options_know_pmix(const struct hvd_spank_srun_options *srun_options);

#endif
