/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the runtime, read once at init. */
#include "collectives/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "gpu_binding/env.h"
#include "gpu_binding/log.h"

static const int64_t default_start_timeout_s = 60;
static const int64_t default_fusion_threshold = 128 * 1024 * 1024;

/* The number in a variable, or fallback when it is unset or not a number from least to most. */
static int64_t read_number(const char *name, int64_t fallback, int64_t least,
                           int64_t most)
{
    const char *text = getenv(name);
    char *end;
    int64_t value;

    if (text == NULL || text[0] == '\0') {
        return fallback;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most) {
        hvd_log(HVD_LOG_WARN,
                "%s=%s is not a number from %" PRId64 " to %" PRId64 "; using %" PRId64,
                name, text, least, most, fallback);
        return fallback;
    }
    return value;
}

static void read_log_level(void)
{
    const char *text = getenv(HVD_ENV_LOG_LEVEL);
    enum hvd_log_level level = HVD_LOG_WARN;

    if (text != NULL && hvd_log_level_parse(text, &level) != 0) {
        hvd_log(HVD_LOG_WARN,
                "%s=%s is none of trace, debug, info, warning, error, fatal; "
                "using warning",
                HVD_ENV_LOG_LEVEL, text);
    }
    hvd_log_least(level);
}

void hvd_settings_read(struct hvd_settings *settings)
{
    const int64_t most_s = INT_MAX / 1000;
    int64_t seconds;

    read_log_level();
    seconds = read_number(HVD_ENV_GLOO_TIMEOUT, default_start_timeout_s, 1, most_s);
    seconds = read_number(HVD_ENV_START_TIMEOUT, seconds, 1, most_s);
    settings->start_timeout_ms = (int)(seconds * 1000);
    settings->fusion_threshold =
        read_number(HVD_ENV_FUSION_THRESHOLD, default_fusion_threshold, 0, INT64_MAX);
}
