/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines go to the standard error stream, or to a sink that the program chooses. */
#ifndef HVD_LOG_H
#define HVD_LOG_H

#include "gpu_binding/base/attr.h"

enum hvd_log_level {
    HVD_LOG_DEBUG,
    HVD_LOG_INFO,
    HVD_LOG_WARN,
    HVD_LOG_ERROR,
    HVD_LOG_OFF,
};

typedef void (*hvd_log_sink)(enum hvd_log_level level, const char *line);

/* Sends lines of `least` and above to sink; NULL: to nowhere. The default is the standard
 * error stream, from HVD_LOG_WARN on. Not thread safe: set it before threads start. */
void hvd_log_to(hvd_log_sink sink, enum hvd_log_level least);

/* Changes only from which level on lines are sent. */
void hvd_log_least(enum hvd_log_level least);

/* From now on lines begin with the time, the level's letter and who speaks, as Horovod's
 * do: "[2026-07-01 12:34:56.123456: W who] " in local time. NULL: with "hvd: " alone, as
 * at the beginning. who is copied, up to 31 characters of it. Not thread safe. */
void hvd_log_stamp(const char *who);

/* One line, lower case, no newline, no prefix: "hvd: " or the stamp is added once. Any
 * thread. */
void hvd_log(enum hvd_log_level level, const char *format, ...) HVD_PRINTF(2, 3);

/* Horovod's HOROVOD_LOG_LEVEL words (trace ... fatal, any case) as a level.
 * Returns 0, or HVD_ERR_ARG and leaves *level alone. */
int hvd_log_level_parse(const char *word, enum hvd_log_level *level);

#endif
