/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the coordinator share: coordinator.c decides what travels together,
 * coordinator_put.c writes the decision down. */
#ifndef HVD_COORDINATOR_STATE_H
#define HVD_COORDINATOR_STATE_H

#include "collectives/agreement/coordinator.h"

/* A tensor that all ranks have. */
struct hvd_ready {
    struct hvd_ready *next;
    struct hvd_tally *tally;
    int64_t bytes;
    int64_t ready_ns;
    int status; /* 0, or why the tensor fails on all ranks */
    bool in_group; /* of a group about which all ranks agree */
    struct hvd_error error;
};

/* How many tensors of a group are ready. */
struct hvd_ready_group {
    uint64_t id;
    int ready;
    bool is_whole; /* all of them were, before the first was sent */
};

struct hvd_coordinator {
    struct hvd_tallies *tallies;
    struct hvd_known_set *known;
    const struct hvd_fusion *fusion;
    struct hvd_ready *ready;
    struct hvd_ready **ready_end;
    struct hvd_ready *spare;
    struct hvd_table groups;
    int64_t bytes;
    int64_t now_ns; /* of the present answer */
    struct hvd_writer *writer;
    struct hvd_writer *set_writer;
    uint64_t next_id;
    size_t leaving; /* evictions in the present answer */
    size_t coming;
    bool has_warned;
};

/* Appends the decision about a batch, whose tensors are the list that begins with lead: evictions,
 * header, tensors, rows. */
void hvd_coordinator_put_batch(struct hvd_coordinator *coordinator,
                               struct hvd_ready *lead, struct hvd_batch_header *header);

#endif
