/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether another process has taken a held port (pmix_boot/held_port.h). The
 * kernel does not reserve the port for a user: before torch.distributed listens, any
 * process of the machine can bind to it with SO_REUSEADDR. */
#ifndef HVDRUN_TAKEN_PORT_H
#define HVDRUN_TAKEN_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct hvd_error;

/* Finds the user of a socket that listens on port in a table such as /proc/net/tcp. */
bool hvdrun_taken_port_user(FILE *table, uint16_t port, uid_t *user);

/* Returns 0 if a program could listen on the port that held_fd holds, else HVD_ERR_SYS;
 * err then names the user of the listener. Call it when no rank is left: the job's own
 * store takes the port, too. */
int hvdrun_taken_port_check(int held_fd, uint16_t port, struct hvd_error *err);

#endif
