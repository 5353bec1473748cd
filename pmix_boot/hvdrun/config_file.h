/* SPDX-License-Identifier: Apache-2.0 */
/* horovodrun's --config-file: a YAML file of sections, whose entries are options.
 *
 *   params:          option = key            fusion_threshold_mb: 32
 *   library_options: option = key            num_nccl_streams: 2
 *   autotune:        option = autotune-key   warmup_samples: 5   enabled: true
 *   timeline:        option = timeline-key   filename: t.json
 *   stall_check:     option = stall-check-key                    enabled: false
 *   logging:         option = log-key        level: INFO
 *   controller: gloo                         and other options without a section
 *
 * "enabled" is the section's own option. For an option that takes no value, `false` turns
 * it off. */
#ifndef HVDRUN_CONFIG_FILE_H
#define HVDRUN_CONFIG_FILE_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* An option that the file sets. */
struct hvdrun_config_entry {
    char *name; /* long name without dashes; not checked against the table of options */
    char *value; /* NULL: the option takes no value */
    size_t line;
};

/* A zeroed config is empty. */
struct hvdrun_config {
    struct hvdrun_config_entry *entries; /* in the order of the file */
    int count;
};

/* Reads a file into an empty config. The caller frees it with hvdrun_config_finish, also
 * after a failure. Error texts name the file and the line. */
int hvdrun_config_read(const char *path, struct hvdrun_config *config,
                       struct hvd_error *err);
void hvdrun_config_finish(struct hvdrun_config *config);

#endif
