/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of hvd-info. */
#ifndef HVD_INFO_OPTIONS_H
#define HVD_INFO_OPTIONS_H

#include <stdio.h>

#include "contrib/info/check/check.h"
#include "contrib/info/live/ask.h"
#include "gpu_binding/binding.h"

enum hvd_info_action {
    HVD_INFO_SHOW,
    HVD_INFO_CHECK,
    HVD_INFO_BUG_REPORT,
    HVD_INFO_SLURM,
    HVD_INFO_PYTHON,
    HVD_INFO_INTO_VENV,
    HVD_INFO_OUT_OF_VENV,
    HVD_INFO_LIVE,
    HVD_INFO_NCCL,
    HVD_INFO_TIMELINE,
    HVD_INFO_HELP,
    HVD_INFO_VERSION,
};

/* Options that the user did not give are zero, NULL or HVD_BIND_AUTO. Texts are borrowed
 * from argv. */
struct hvd_info_options {
    enum hvd_info_action action;
    const char *topology_file;
    const char *gpus;
    const char *allowed_text;
    struct hvd_cpuset allowed; /* the parsed allowed_text */
    int rank_count;
    const char *report; /* the file, "-" for standard output, or NULL */
    const char *python;
    const char *venv;
    const char *nccl; /* the directory */
    const char *timeline;
    struct hvd_info_live_question live;
    struct hvd_info_check_options check;
    struct hvd_plan_options plan;
};

/* Parses the command line. For a bad option, returns HVD_ERR_ARG and one sentence in err
 * that names the option and what was expected. */
int hvd_info_parse(int argc, char **argv, struct hvd_info_options *options,
                   struct hvd_error *err);

void hvd_info_usage(FILE *out);

#endif
