/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for srun and slurmstepd: implements the functions that Slurm offers to
 * plugins, with records that a test fills and reads. */
#ifndef HVD_TESTS_FAKE_SPANK_H
#define HVD_TESTS_FAKE_SPANK_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

/* The values that spank_get_item returns. */
struct fake_step {
    uint32_t step_id;
    uint32_t nodes;
    uint32_t node;
    uint32_t tasks;
    uint32_t local_tasks;
    uint32_t rank;
    int local_rank;
    const char *cores;
    int words; /* of the program's command line */
    char **command;
};

extern enum spank_context fake_context;
extern struct fake_step fake_step;

/* All messages of slurm_error, slurm_info and slurm_spank_log since fake_reset. The
 * memory is shared with child processes, so it has the messages of tasks, too. */
extern char *fake_messages;

/* Clears everything: the environment of the step, srun's options, messages, and the
 * values of spank_get_item. */
void fake_reset(enum spank_context context);

/* Read and change the environment of the step or task. */
void fake_step_setenv(const char *name, const char *value);
const char *fake_step_getenv(const char *name);
int fake_step_env_count(void);

/* Makes spank_getenv fail with this error for this variable until fake_reset. The pointer
 * `name` is kept. */
void fake_break_getenv(const char *name, spank_err_t error);

/* Read and change srun's options as the user types them. */
void fake_type_option(const char *name, const char *value);
const char *fake_option(const char *name);
int fake_option_count(void);

/* The callbacks of a plugin that fake_load has loaded anew, without state from earlier
 * tests. */
struct fake_plugin {
    void *handle;
    spank_f *init;
    spank_f *init_post_opt;
    spank_f *local_user_init;
    spank_f *user_init;
    spank_f *task_init;
    spank_f *exit;
};

void fake_load(struct fake_plugin *plugin, const char *path);
void fake_unload(struct fake_plugin *plugin);

/* The option that the plugin registered last; NULL if it has registered none. */
extern struct spank_option *fake_registered;

#endif
