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
 * "enabled" is the section's own option; false turns an option that takes no value off. */
#ifndef HVDRUN_CONFIG_FILE_H
#define HVDRUN_CONFIG_FILE_H

#include "gpu_binding/base/error.h"
#include "pmix_boot/hvdrun/options.h"

/* Sets what the file says. A failure names the file and the line. */
int hvdrun_config_read(struct hvdrun_options *options, const char *path,
                       struct hvd_error *err);

#endif
