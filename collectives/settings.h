/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the runtime, read once at init. */
#ifndef HVD_SETTINGS_H
#define HVD_SETTINGS_H

#include <stdint.h>

struct hvd_settings {
    int start_timeout_ms;
    int64_t fusion_threshold; /* bytes */
};

/* Reads the environment and sets the least log level. A value that cannot be right gets a
 * warning that names variable, value and what is used instead. */
void hvd_settings_read(struct hvd_settings *settings);

#endif
