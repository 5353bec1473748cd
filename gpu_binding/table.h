/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a plan to people: a picture of the node, a line per rank, and the notes. */
#ifndef HVD_TABLE_H
#define HVD_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "gpu_binding/plan.h"

/* The node by sockets, with each rank beside its GPU; at most 100 columns wide where the
 * lists of cpus allow it. host names the node. */
void hvd_picture_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                       const char *host, FILE *out);

/* A heading and one line per rank. */
void hvd_table_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                     FILE *out);

/* The notes, a sentence a line. */
void hvd_notes_print(const struct hvd_plan *plan, FILE *out);

#endif
