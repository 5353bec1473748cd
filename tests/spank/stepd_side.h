/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of slurmstepd's side of the plugin share. */
#ifndef HVD_TEST_STEPD_SIDE_H
#define HVD_TEST_STEPD_SIDE_H

#include "tests/spank/fake_spank.h"

/* Where the plugin is; borrowed. */
void side_begin(const char *path);

/* Task 1 of 2 on the second of two nodes, four tasks in all, two GPUs per node. */
void side_enter_step(void);

/* Loads the plugin and calls nothing. */
void side_load(struct fake_plugin *plugin);

/* Loads the plugin and goes as far as root goes, with this option text (NULL: not given)
 * and these words of plugstack.conf. */
void side_start_with(struct fake_plugin *plugin, const char *text, int count,
                     char **words);

/* The same with words that suit a test. */
void side_start(struct fake_plugin *plugin, const char *text);

void side_finish(struct fake_plugin *plugin);

#endif
