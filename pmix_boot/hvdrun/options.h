/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun's options, which are horovodrun's, from the command line or from a file. */
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
    int min; /* numbers in this struct are 0 if not given */
    int max;
    int spares; /* ranks of -np that wait until they replace failed ones */
    int slots_per_host;
    char *discovery; /* command that prints hosts; NULL: none */
    int timeout_s;
    bool has_reset_limit;
    int reset_limit;
    int cooldown_min_s; /* shortest wait before a failed rank is restarted */
    int cooldown_max_s; /* longest wait; 0: failed ranks are not restarted */
};

struct hvdrun_options {
    enum hvdrun_action action;
    int ranks; /* 0: not given */
    char *hosts; /* from -H, or from --hostfile in the same form; NULL: none */
    char *output_directory; /* NULL: no copies in files */
    char *mpi_arguments; /* for mpirun, separated by spaces; NULL: none */
    char *ssh_arguments; /* for mpirun's ssh; NULL: none */
    enum hvd_bind_mode bind;
    struct hvdrun_elastic_options elastic;
    bool is_verbose;
    bool has_prefix; /* lines of ranks begin with the rank and the stream */
    bool has_time; /* lines begin with the time; only together with has_prefix */
    /* variables for the ranks, which win over inherited ones */
    struct hvdrun_string_list settings;
    struct hvdrun_string_list remarks; /* a sentence for each option that has no effect */
    int open_files; /* how many --config-file are being read */
    char *const *command; /* borrowed from the arguments; ends with NULL */
};

/* Reads a command line. A later setting wins over an earlier one, so an option after
 * --config-file wins over the file. Returns HVD_ERR_ARG for a wrong option, and
 * HVD_ERR_UNSUPPORTED for an option of horovodrun that hvd lacks; both errors say what to
 * do. The caller ends *options with hvdrun_options_finish, also after a failure. */
int hvdrun_options_read(struct hvdrun_options *options, int count, char *const *arguments,
                        struct hvd_error *err);

/* Sets one option by its name without dashes. value NULL: none was given. */
int hvdrun_options_set(struct hvdrun_options *options, const char *name,
                       const char *value, struct hvd_error *err);

bool hvdrun_options_is_elastic(const struct hvdrun_options *options);

void hvdrun_options_finish(struct hvdrun_options *options);

#endif
