/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report (HVD_REPORT): passes the measurements (straggler_waits.h) up the
 * tree of ranks, and writes the result on rank 0.
 *
 * Threads: one at a time for all functions (the progress lock), unless a function says
 * otherwise. */
#ifndef HVD_STRAGGLER_REPORT_H
#define HVD_STRAGGLER_REPORT_H

#include "collectives/trace/straggler_waits.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

struct hvd_straggler_report;

/* setting: the value of HVD_REPORT; NULL: measure, for hvd_straggler_report_sums, and
 * write nothing. Either all ranks of a job have a report, or none has.
 * boot and uplink are borrowed until destroy. If the destination cannot be written to, a
 * warning is logged. */
int hvd_straggler_report_create(const struct hvd_boot *boot, struct hvd_uplink *uplink,
                                const char *setting, struct hvd_straggler_report **out,
                                struct hvd_error *err);

/* Do the work of hvd_section_begin and hvd_section_end in hvd.h. Any thread. */
void hvd_straggler_report_begin_section(struct hvd_straggler_report *report,
                                        const char *name);
int hvd_straggler_report_end_section(struct hvd_straggler_report *report);

/* Notes a batch that has ended on this rank. */
void hvd_straggler_report_note(struct hvd_straggler_report *report,
                               const struct hvd_straggler_batch *batch);

/* Merges a message HVD_MESSAGE_STRAGGLERS of a child. */
void hvd_straggler_report_merge(struct hvd_straggler_report *report, const void *payload,
                                size_t bytes);

/* To be called when all batches of the job have ended on this rank, and before the rank
 * reports that to its parent. */
void hvd_straggler_report_close(struct hvd_straggler_report *report);

/* Writes the report on rank 0, once; does nothing on other ranks. To be called when every
 * rank has closed, or when the job has failed. If the report goes to a file, it is also
 * written while the job runs, at most once a minute, because many jobs are killed at a
 * time limit. */
void hvd_straggler_report_write(struct hvd_straggler_report *report);

/* Returns the sums so far, on rank 0; borrowed until the next call of any function. */
const struct hvd_straggler_sums *
hvd_straggler_report_sums(struct hvd_straggler_report *report);

/* NULL is fine. */
void hvd_straggler_report_destroy(struct hvd_straggler_report *report);

#endif
