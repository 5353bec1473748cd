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

/* Sends lines of level `least` and above to sink; NULL discards them. By default, lines
 * from HVD_LOG_WARN on go to the standard error stream. Not thread safe: call it before
 * threads start. */
void hvd_log_to(hvd_log_sink sink, enum hvd_log_level least);

/* Changes only the level from which lines are sent. */
void hvd_log_least(enum hvd_log_level least);

/* From now on, lines begin with the time, the level's letter and a name, as Horovod's do:
 * "[2026-07-01 12:34:56.123456: W who] ", in local time. With NULL they begin with
 * "hvd: ", as by default. At most 31 characters of who are copied. Not thread safe. */
void hvd_log_stamp(const char *who);

/* Logs one line, in lower case, without newline and prefix: "hvd: " or the stamp is
 * added. Any thread may call it. */
void hvd_log(enum hvd_log_level level, const char *format, ...) HVD_PRINTF(2, 3);

/* Parses a word of HOROVOD_LOG_LEVEL (trace ... fatal, in any case). Returns 0, or
 * HVD_ERR_ARG and leaves *level alone. */
int hvd_log_level_parse(const char *word, enum hvd_log_level *level);

#endif
