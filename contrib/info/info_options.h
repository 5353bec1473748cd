/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvd-info. */
#ifndef HVD_INFO_OPTIONS_H
#define HVD_INFO_OPTIONS_H

#include <stdio.h>

#include "gpu_binding/binding.h"

enum hvd_info_action {
    HVD_INFO_SHOW,
    HVD_INFO_CHECK,
    HVD_INFO_HELP,
    HVD_INFO_VERSION,
};

/* Zero, NULL and HVD_BIND_AUTO where the user said nothing. Texts are those of argv. */
struct hvd_info_options {
    enum hvd_info_action action;
    const char *topology_file;
    const char *gpus;
    const char *allowed_text;
    struct hvd_cpuset allowed; /* of allowed_text */
    int rank_count;
    struct hvd_plan_options plan;
};

/* A bad option is HVD_ERR_ARG and one sentence that names it and what was expected. */
int hvd_info_parse(int argc, char **argv, struct hvd_info_options *options,
                   struct hvd_error *err);

void hvd_info_usage(FILE *out);

#endif
