/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun's command line, which is horovodrun's, and the same settings in a file. */
#ifndef HVDRUN_OPTIONS_H
#define HVDRUN_OPTIONS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan.h"
#include "pmix_boot/hvdrun/string_list.h"

enum hvdrun_action {
    HVDRUN_RUN,
    HVDRUN_HELP,
    HVDRUN_VERSION,
    HVDRUN_CHECK_BUILD,
};

/* horovodrun's options of elastic jobs. */
struct hvdrun_elastic_options {
    int min; /* 0: not given; so the others */
    int max;
    int slots_per_host;
    char *discovery; /* a command that prints hosts; NULL */
    int timeout_s;
    bool has_reset_limit;
    int reset_limit;
    int cooldown_min_s; /* before a rank is started again */
    int cooldown_max_s; /* 0: it is not */
};

struct hvdrun_options {
    enum hvdrun_action action;
    int ranks; /* 0: not given */
    char *hosts; /* -H, or what --hostfile says in the same form; NULL */
    char *output_directory; /* NULL: no copies in files */
    char *mpi_arguments; /* for mpirun, separated by spaces; NULL */
    char *ssh_arguments; /* for mpirun's ssh; NULL */
    enum hvd_bind_mode bind;
    struct hvdrun_elastic_options elastic;
    bool is_verbose;
    bool has_prefix; /* lines of ranks begin with rank and stream */
    bool has_time; /* and with the time before these; only together with has_prefix */
    struct hvdrun_string_list settings; /* what the ranks get, before all else */
    struct hvdrun_string_list remarks; /* items are sentences: options that do nothing */
    int open_files; /* of --config-file, while they are read */
    char *const *command; /* borrowed from the arguments; ends with NULL */
};

/* Reads a command line. A later setting wins over an earlier one, so one after
 * --config-file wins over the file. HVD_ERR_ARG for what makes no sense,
 * HVD_ERR_UNSUPPORTED for what horovodrun has and hvd has not; both say what to do.
 * *options is the caller's, to end with hvdrun_options_finish, also after a failure. */
int hvdrun_options_read(struct hvdrun_options *options, int count, char *const *arguments,
                        struct hvd_error *err);

/* One option by its long name without dashes. value NULL: none was given. */
int hvdrun_options_set(struct hvdrun_options *options, const char *name,
                       const char *value, struct hvd_error *err);

bool hvdrun_options_is_elastic(const struct hvdrun_options *options);

void hvdrun_options_finish(struct hvdrun_options *options);

#endif
