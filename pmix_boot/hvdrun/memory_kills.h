/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the processes that the kernel killed because memory ran out, by the cgroup
 * (version 1 or 2) of hvdrun and its ranks. The cgroup does not tell which processes
 * these were. */
#ifndef HVDRUN_MEMORY_KILLS_H
#define HVDRUN_MEMORY_KILLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Finds the file with the counter for a process, from its /proc/PID/cgroup. Returns false
 * if there is none. */
bool hvdrun_memory_kills_file(FILE *cgroups, char *path, size_t bytes);

/* Reads the counter from such a file; -1: it has none. */
long hvdrun_memory_kills_read(FILE *events);

/* Reads the counter for this process; -1: unknown. */
long hvdrun_memory_kills(void);

#endif
