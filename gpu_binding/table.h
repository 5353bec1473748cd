/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan for people: a picture of the node, a line per rank, and the notes. */
#ifndef HVD_TABLE_H
#define HVD_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "gpu_binding/plan.h"

/* Prints the node by sockets, with each rank beside its GPU; at most 100 columns wide if
 * the lists of cpus allow it. host is the node's name. */
void hvd_picture_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                       const char *host, FILE *out);

/* Prints a heading and one line per rank. */
void hvd_table_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                     FILE *out);

/* Prints the notes, one sentence per line. */
void hvd_notes_print(const struct hvd_plan *plan, FILE *out);

#endif
