/* SPDX-License-Identifier: Apache-2.0 */
/* Where the report on who was late goes: the standard error stream or files. */
#ifndef HVD_STRAGGLER_OUTPUT_H
#define HVD_STRAGGLER_OUTPUT_H

#include "collectives/trace/straggler_text.h"

/* Zeroed: the standard error stream. */
struct hvd_straggler_output {
    char *text; /* path, absolute; NULL: none */
    char *json;
    bool is_plain; /* and these are plain files: can be written again and again */
};

/* From the value of HVD_REPORT: "1" is the standard error stream, a name that ends in
 * .json a file for the JSON, any other name a file for the table, with the JSON beside it
 * in NAME.json. Names are taken relative to the directory of now, and files are made at
 * once and emptied: who cannot write there learns it before the job has run, and no
 * report of an earlier job is taken for this one's. After a failure, which err explains,
 * the standard error stream is used. *output is the caller's, to end with finish. */
int hvd_straggler_output_init(struct hvd_straggler_output *output, const char *setting,
                              struct hvd_error *err);
void hvd_straggler_output_finish(struct hvd_straggler_output *output);

/* Writes the report. HVD_ERR_SYS when a file could not be written. */
int hvd_straggler_output_write(const struct hvd_straggler_output *output,
                               const struct hvd_straggler_sums *sums,
                               const struct hvd_straggler_job *job,
                               struct hvd_error *err);

#endif
