/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the kernel has killed because memory ran out, as the cgroup of hvdrun
 * and its ranks counts them: of both versions of cgroups. Whom it has killed is not
 * known. */
#ifndef HVDRUN_MEMORY_KILLS_H
#define HVDRUN_MEMORY_KILLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The file that counts, for a process whose /proc/PID/cgroup is this; false: there is
 * none. */
bool hvdrun_memory_kills_file(FILE *cgroups, char *path, size_t bytes);

/* What such a file says; -1: nothing. */
long hvdrun_memory_kills_read(FILE *events);

/* Of this process; -1 if it cannot be known. */
long hvdrun_memory_kills(void);

#endif
