/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the topologies that tests use. */
#ifndef HVD_TEST_NODE_FILE_H
#define HVD_TEST_NODE_FILE_H

#include <stdbool.h>

#include "gpu_binding/topology.h"

/* All names, ended by NULL. Topologies whose names do not start with "built-" are not in
 * this tree. */
extern const char *const node_file_names[];

/* Loads a topology from the tree below root, or from ../shared beside it. Returns false
 * if neither has it; ends the program if a file does not load. */
bool node_file_load(const char *root, const char *name, struct hvd_topology *topology);

#endif
