/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of the straggler report: the standard error stream, or files. */
#ifndef HVD_STRAGGLER_OUTPUT_H
#define HVD_STRAGGLER_OUTPUT_H

#include "collectives/trace/straggler_text.h"

/* All zeros: the standard error stream. */
struct hvd_straggler_output {
    char *text; /* absolute path, or NULL */
    char *json;
    char *page;
    char *frame; /* of the page (straggler_page.h) */
    bool is_plain; /* the files are regular, so that they can be rewritten */
};

/* Parses the value of HVD_REPORT: "1" is the standard error stream; a name that ends in
 * .json is a file for the JSON, one that ends in .html a file for the page; any other
 * name is a file for the table, with the JSON in NAME.json. Names are relative to the
 * current directory. The files are created and
 * emptied at once: a user who cannot write there learns it before the job has run, and a
 * report of an earlier job is not taken for this one's. After a failure, which err
 * explains, the standard error stream is used. The caller ends *output with finish. */
int hvd_straggler_output_init(struct hvd_straggler_output *output, const char *setting,
                              struct hvd_error *err);
void hvd_straggler_output_finish(struct hvd_straggler_output *output);

/* Whether the value of HVD_REPORT asks for a page. */
bool hvd_straggler_output_is_page(const char *setting);

/* Writes the report. Returns HVD_ERR_SYS if a file could not be written. */
int hvd_straggler_output_write(const struct hvd_straggler_output *output,
                               const struct hvd_straggler_sums *sums,
                               const struct hvd_straggler_job *job,
                               struct hvd_error *err);

#endif
