/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a node that exists only as files: 2 sockets with 2 cores each (cpus 0-1 and 2-3,
 * memory nodes 0 and 1), a V100 at 86:00 and, on socket 0, a card mlx5_0 at 5e:00 with
 * port 1 up and port 2 down. */
#ifndef HVD_TEST_FAKE_NODE_H
#define HVD_TEST_FAKE_NODE_H

/* Makes the files in a new folder, writes its name to path (64 bytes), and makes hwloc
 * read it for the rest of this process. local_cpus is the GPU's mask ("c" for socket 1).
 * `step` lists the cpus that the process's cgroup allows ("0-3"). Ends the program on
 * failure. */
void fake_node_create(const char *local_cpus, const char *step, char *path);

/* Writes one more file into the folder, with its directories. */
void fake_node_write(const char *path, const char *file, const char *text);

/* Removes the folder. */
void fake_node_destroy(const char *path);

#endif
