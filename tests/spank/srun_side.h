/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of srun's side of the plugin share. */
#ifndef HVD_TEST_SRUN_SIDE_H
#define HVD_TEST_SRUN_SIDE_H

#include <stdbool.h>

#include "tests/spank/fake_spank.h"

/* Takes the path of the plugin from the first argument, and creates a file that
 * represents Slurm's PMIx plugin. */
void side_begin(int count, char **arguments);
void side_install_pmix(bool is_there);

/* Sets the environment of a batch script on two nodes with four GPUs and 16 cpus each. */
void side_enter_job(void);

/* Loads the plugin, with this word of plugstack.conf (NULL: none). */
void side_start(struct fake_plugin *plugin, char *word);

/* Behaves like `srun --hvd=text`; returns the callback's status. */
int side_type_hvd(const char *text);

/* True if the option or variable has this value; value NULL: if it is not set. */
bool side_has_option(const char *name, const char *value);
bool side_has_variable(const char *name, const char *value);

/* Returns the exit status of srun if it ended in init_post_opt, or -1 if it went on. */
int side_status_of_check(struct fake_plugin *plugin);

#endif
