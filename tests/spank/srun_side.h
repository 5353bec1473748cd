/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of srun's side of the plugin share. */
#ifndef HVD_TEST_SRUN_SIDE_H
#define HVD_TEST_SRUN_SIDE_H

#include <stdbool.h>

#include "tests/spank/fake_spank.h"

/* The plugin is the first argument; Slurm has its PMIx plugin. */
void side_begin(int count, char **arguments);
void side_install_pmix(bool is_there);

/* A batch script's environment on two nodes with four GPUs and 16 cpus each. */
void side_enter_job(void);

/* Loads the plugin, with this word of plugstack.conf (NULL: none). */
void side_start(struct fake_plugin *plugin, char *word);

/* As `srun --hvd=text`; returns the callback's status. */
int side_type_hvd(const char *text);

/* value NULL: is not set. */
bool side_has_option(const char *name, const char *value);
bool side_has_variable(const char *name, const char *value);

/* The exit status of srun if it ended in init_post_opt; -1 when it went on. */
int side_status_of_check(struct fake_plugin *plugin);

#endif
