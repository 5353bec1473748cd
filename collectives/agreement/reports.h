/* SPDX-License-Identifier: Apache-2.0 */
/* Reports up the tree: the tensors that all ranks at and below this one have ready, and
 * records about joins, replays and stalls. Rank 0 sends no reports; its coordinator takes
 * the tensors.
 *
 * A message is the position of the last message of decisions that its sender had seen
 * (relay.h), followed by records. */
#ifndef HVD_REPORTS_H
#define HVD_REPORTS_H

#include "collectives/agreement/ready_table.h"

struct hvd_agreement;
struct hvd_entry;
struct hvd_set_wish;

struct hvd_reports {
    struct hvd_ready_table ready_tensor;
    struct hvd_writer writer; /* the next message to the parent */
    struct hvd_id_range range;
    uint64_t said_position; /* the position in the last message */
};

/* A message of a branch (sets.h) while it is parsed. */
struct hvd_branch_message {
    int branch;
    /* the sender's position (relay.h), which determines the meaning of the ids */
    uint64_t position;
    struct hvd_reader reader;
    int64_t now_ns;
};

void hvd_reports_init(struct hvd_reports *reports, const struct hvd_sets *sets);
void hvd_reports_finish(struct hvd_reports *reports);

/* Adds a tensor that this rank has submitted. */
int hvd_reports_add(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* Adds a tensor like hvd_reports_add, but must not be called while decisions are carried
 * out, because they could evict the tensor. On a leaf of the tree, which waits for no
 * other rank, the report goes into the next message at once. */
int hvd_reports_submit(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* Add the tensors that a branch reports. The caller has already read the record. */
int hvd_reports_take_cached(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message,
                            const struct hvd_record *record);
int hvd_reports_take_tensor(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message, struct hvd_record record);

/* On ranks other than 0: writes the tensors that have become complete into the next
 * message. */
int hvd_reports_pass_up(struct hvd_agreement *agreement);

/* Passes a request for a process set, by this rank or one below it, up the tree
 * (set_creations.h). Not on rank 0. */
int hvd_reports_put_wish(struct hvd_agreement *agreement,
                         const struct hvd_set_wish *wish);

/* Begins another record of the next message; returns the writer for the rest of the
 * record. */
struct hvd_writer *hvd_reports_put(struct hvd_reports *reports, enum hvd_report_kind kind,
                                   uint32_t count, uint64_t id);

/* Writes the complete tensors and sends the message, if there is any; then sets
 * *moved. */
int hvd_reports_send(struct hvd_agreement *agreement, bool *moved);

#endif
