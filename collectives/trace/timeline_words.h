/* SPDX-License-Identifier: Apache-2.0 */
/* Names of activities and rows in the timeline: Horovod's, if it has one. Pure. */
#ifndef HVD_TIMELINE_WORDS_H
#define HVD_TIMELINE_WORDS_H

#include <stdbool.h>

#include "collectives/request/request.h"

/* Returns "NEGOTIATE_ALLREDUCE", for example; NULL for a kind that is not shown. */
const char *hvd_timeline_negotiation(enum hvd_kind kind);

/* Returns "SHM_ALLREDUCE" or "NET_ALLREDUCE", for example, for a kind that is shown. */
const char *hvd_timeline_transport(enum hvd_kind kind, bool crosses_nodes);

/* Returns {"dtype": "float32", "shape": "[3, 4]"}, with the shape of the output if the
 * library allocates it, else of the input. The caller frees it; NULL if memory is out. */
char *hvd_timeline_describe(const struct hvd_entry *entry);

/* Returns a message's dtype, bytes, tag and other rank, as JSON in the same form. */
char *hvd_timeline_describe_p2p(const struct hvd_entry *entry);

/* Writes the name of a row for messages of this direction and other rank. Such rows are
 * numbered from 1 on, because several messages may be in flight. */
void hvd_timeline_name_p2p(const struct hvd_entry *entry, int number, char *name,
                           size_t bytes);

#endif
