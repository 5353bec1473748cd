/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of slurmstepd's side of the plugin share. */
#ifndef HVD_TEST_STEPD_SIDE_H
#define HVD_TEST_STEPD_SIDE_H

#include <stdbool.h>

#include "tests/spank/fake_spank.h"

/* Sets the path of the plugin, which is borrowed. */
void side_begin(const char *path);

/* Puts the plugin in task 1 of 2 on the second of two nodes, with four tasks in all and
 * two GPUs per node. */
void side_enter_step(void);

/* Loads the plugin without calling it. */
void side_load(struct fake_plugin *plugin);

/* Loads the plugin and runs all callbacks that run as root, with this option text (NULL:
 * not given) and these words of plugstack.conf. */
void side_start_with(struct fake_plugin *plugin, const char *text, int count,
                     char **words);

/* The same, with the words of plugstack.conf that most tests use. */
void side_start(struct fake_plugin *plugin, const char *text);

void side_finish(struct fake_plugin *plugin);

/* Runs task_init and then check in a child, as slurmstepd does with a task. The binding
 * ends with the child. Returns 0 if check returns true. */
int side_run_task(struct fake_plugin *plugin, bool (*check)(void));

/* Returns whether a variable of the task has this value (NULL: is unset), and prints what
 * was found if not. */
bool side_is(const char *name, const char *value);

/* Runs task_init and returns whether the variables of the task are these, separated by
 * spaces: NAME=VALUE, -NAME for one that is unset, +NAME for one that is set. */
bool side_task_has(struct fake_plugin *plugin, const char *variables);

#endif
