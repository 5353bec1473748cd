/* SPDX-License-Identifier: Apache-2.0 */
/* The report on who was late, from the first batch of a job to the file: what HVD_REPORT
 * asks for. Ties the counting (straggler_waits.h) to the tree of ranks and to the output.
 *
 * Threads: one at a time for all functions (the progress lock). */
#ifndef HVD_STRAGGLER_REPORT_H
#define HVD_STRAGGLER_REPORT_H

#include "collectives/trace/straggler_waits.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

struct hvd_straggler_report;

/* setting is the value of HVD_REPORT. All ranks of a job have one, or none has. boot and
 * uplink are borrowed until destroy. A place that cannot be written to is warned of. */
int hvd_straggler_report_create(const struct hvd_boot *boot, struct hvd_uplink *uplink,
                                const char *setting, struct hvd_straggler_report **out,
                                struct hvd_error *err);

/* A batch has ended on this rank. */
void hvd_straggler_report_note(struct hvd_straggler_report *report,
                               const struct hvd_straggler_batch *batch);

/* A HVD_MESSAGE_STRAGGLERS of a child. */
void hvd_straggler_report_merge(struct hvd_straggler_report *report, const void *payload,
                                size_t bytes);

/* All batches of the job have ended on this rank; before it tells its parent so. */
void hvd_straggler_report_close(struct hvd_straggler_report *report);

/* On rank 0 writes the report, once; elsewhere does nothing. When every rank has closed,
 * or when the job has failed. Where it goes to a file, what is known is also written
 * while the job runs, at most once a minute: many jobs end by a time limit and have no
 * last moment. */
void hvd_straggler_report_write(struct hvd_straggler_report *report);

/* NULL is fine. */
void hvd_straggler_report_destroy(struct hvd_straggler_report *report);

#endif
