/* SPDX-License-Identifier: Apache-2.0 */
/* The topologies that tests run on. */
#ifndef HVD_TEST_NODE_FILE_H
#define HVD_TEST_NODE_FILE_H

#include <stdbool.h>

#include "gpu_binding/topology.h"

/* All names, ended by NULL. Those that do not start with "built-" are not in this
 * tree. */
extern const char *const node_file_names[];

/* Loads one from the tree below root, else from ../shared beside it. False when neither
 * has it; a file that is there and does not load ends the program. */
bool node_file_load(const char *root, const char *name, struct hvd_topology *topology);

#endif
