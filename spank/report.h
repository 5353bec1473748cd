/* SPDX-License-Identifier: Apache-2.0 */
/* Binding tables travel from the nodes of a step to srun, which prints equal ones once.
 *
 * Slurm offers no way back from slurmstepd to the plugin in srun but the user's terminal. So
 * srun listens on a port while a step with --hvd=verbose starts, and tells the nodes port
 * and a random key through the environment of the step; the first task of each node
 * connects, writes "KEY HOST\n" and the table, and closes. */
#ifndef HVD_SPANK_REPORT_H
#define HVD_SPANK_REPORT_H

#include "gpu_binding/base/error.h"

struct hvd_report;

/* Room for "port:key" with its closing zero. */
#define HVD_REPORT_ADDRESS_BYTES 48

/* The longest table that is taken. */
#define HVD_REPORT_TEXT_BYTES 65536

/* In srun: starts a thread that collects the tables of `nodes` nodes and prints them on the
 * standard error stream, each shape once, when all are in or no more come. Writes what the
 * nodes need to know to address. */
int hvd_report_create(int nodes, char address[HVD_REPORT_ADDRESS_BYTES],
                      struct hvd_report **report, struct hvd_error *err);

/* Prints what has come in, says what is missing, and ends the thread. NULL is fine. */
void hvd_report_destroy(struct hvd_report *report);

/* On a node: sends text to the srun on host (a numeric address). Waits 2 s at most. */
int hvd_report_send(const char *host, const char *address, const char *text,
                    struct hvd_error *err);

#endif
