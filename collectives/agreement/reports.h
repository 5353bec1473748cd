/* SPDX-License-Identifier: Apache-2.0 */
/* What goes up the tree: which tensors all ranks at and below this one have ready, and
 * records about joins, replays and stalls. Rank 0 sends nothing up: its coordinator takes
 * the tensors.
 *
 * A message is the number of the last decision message that its sender had seen, then
 * records. */
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
    uint64_t said_position; /* in the last message */
};

/* A message of a branch (sets.h), while it is read. */
struct hvd_branch_message {
    int branch;
    uint64_t position; /* of its sender: what ids mean in it */
    struct hvd_reader reader;
    int64_t now_ns;
};

void hvd_reports_init(struct hvd_reports *reports, const struct hvd_sets *sets);
void hvd_reports_finish(struct hvd_reports *reports);

/* This rank has a tensor ready. */
int hvd_reports_add(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* The same while no decisions are carried out, which could evict the tensor. A leaf of
 * the tree waits for no other rank: its report goes into the next message at once. */
int hvd_reports_submit(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* A branch has. The record has been taken already. */
int hvd_reports_take_cached(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message,
                            const struct hvd_record *record);
int hvd_reports_take_tensor(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message, struct hvd_record record);

/* Not on rank 0: writes which tensors have become ready into the message. */
int hvd_reports_pass_up(struct hvd_agreement *agreement);

/* A rank at or below this one, which is not rank 0, asks for a process set:
 * set_creations.h. */
int hvd_reports_put_wish(struct hvd_agreement *agreement,
                         const struct hvd_set_wish *wish);

/* Begins another record of the next message; returns where what belongs to it is
 * written. */
struct hvd_writer *hvd_reports_put(struct hvd_reports *reports, enum hvd_report_kind kind,
                                   uint32_t count, uint64_t id);

/* The same, and sends the message, if there is one; *moved is set then. */
int hvd_reports_send(struct hvd_agreement *agreement, bool *moved);

#endif
