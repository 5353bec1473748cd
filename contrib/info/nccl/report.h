/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the warnings of NCCL, as text or as one JSON object. Pure. */
#ifndef HVD_INFO_NCCL_REPORT_H
#define HVD_INFO_NCCL_REPORT_H

#include <stdio.h>

#include "contrib/info/nccl/kinds.h"

struct hvd_info_nccl_report {
    const char *directory;
    /* [file_count] sorted by hvd_info_nccl_files_compare */
    const struct hvd_info_nccl_file *files;
    int file_count;
    struct hvd_info_nccl_kinds kinds;
};

/* Compares two files by rank, node and pid, as qsort does; unknown ranks come last. */
int hvd_info_nccl_files_compare(const void *left, const void *right);

/* Prints a line about the files, notes about missing and repeated ranks, and a paragraph
 * for each kind of warning. */
int hvd_info_nccl_print(const struct hvd_info_nccl_report *report, FILE *out,
                        struct hvd_error *err);

/* Prints the same as one line of JSON. */
int hvd_info_nccl_json(const struct hvd_info_nccl_report *report, FILE *out,
                       struct hvd_error *err);

#endif
