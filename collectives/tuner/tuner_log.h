/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner's log, in Horovod's format: a line of column names, a line a sample, the last line
 * is the setting that stays. Columns that are no knob of hvd's are constants; a knob that is
 * no column of Horovod's comes after the score. Sizes in MiB, times in ms, scores in
 * bytes/us. */
#ifndef HVD_TUNER_LOG_H
#define HVD_TUNER_LOG_H

#include "collectives/tuner/knob.h"
#include "collectives/tuner/tuner_search.h"

struct hvd_tuner_log;

/* Empties the file and writes the names. When that is not possible, warns with the file's name and
 * the reason, and returns NULL: a log that writes nothing. knobs: [count], borrowed. */
struct hvd_tuner_log *hvd_tuner_log_open(const char *path, const struct hvd_knob *knobs,
                                         int count);
void hvd_tuner_log_close(struct hvd_tuner_log *log); /* NULL is fine */

/* One line, at once in the file. NULL is fine. */
void hvd_tuner_log_write(struct hvd_tuner_log *log,
                         const struct hvd_tuner_setting *setting, double score);

#endif
