/* SPDX-License-Identifier: Apache-2.0 */
/* What the timeline calls things: Horovod's names, where it has one. Pure. */
#ifndef HVD_TIMELINE_WORDS_H
#define HVD_TIMELINE_WORDS_H

#include <stdbool.h>

#include "collectives/request/request.h"

/* "NEGOTIATE_ALLREDUCE"; NULL for a kind that is not shown. */
const char *hvd_timeline_negotiation(enum hvd_kind kind);

/* "SHM_ALLREDUCE" or "NET_ALLREDUCE", of a kind that is shown. */
const char *hvd_timeline_transport(enum hvd_kind kind, bool crosses_nodes);

/* {"dtype": "float32", "shape": "[3, 4]"}, the shape of the output where the library
 * allocates it, else of the input. To be freed; NULL without memory. */
char *hvd_timeline_describe(const struct hvd_entry *entry);

/* The same of a message, which has no shape, and which may have come from any rank. */
char *hvd_timeline_describe_p2p(const struct hvd_entry *entry);

/* The name of the number-th row of messages of this direction and the other rank, from 1
 * on. */
void hvd_timeline_name_p2p(const struct hvd_entry *entry, int number, char *name,
                           size_t bytes);

#endif
