/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of slurmstepd's side of the plugin share. */
#ifndef HVD_TEST_STEPD_SIDE_H
#define HVD_TEST_STEPD_SIDE_H

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

#endif
