/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner: measures training steps and finds the fusion threshold and cycle time
 * that make them fastest. Rank 0 owns one. It uses neither clock nor network: the caller
 * passes the time.
 *
 * A step lasts from one end of the marker to the next. The marker is the largest tensor
 * of a step, so that metrics averaged now and then do not count. A sample is a number of
 * steps with one setting; the first four in ten do not count, because the ranks adapt to
 * the setting in them. Its score is the median over the other steps of bytes / us, so
 * that a checkpoint or an evaluation does not matter.
 *
 * The candidates are the defaults and a small grid of settings. Each round samples every
 * candidate once, then only the best go on to the next round (successive halving). The
 * defaults take part in every round, and stay if the winner is not faster beyond the
 * noise.
 *
 * With Horovod's defaults, which the members below give in parentheses, tuning ends
 * within 500 steps. Any thread, one at a time. */
#ifndef HVD_TUNER_H
#define HVD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_tuner_setting {
    int64_t fusion_threshold; /* bytes */
    double cycle_time_ms;
};

/* HOROVOD_AUTOTUNE_*. GAUSSIAN_PROCESS_NOISE is not here: the noise is measured. */
struct hvd_tuner_options {
    struct hvd_tuner_setting defaults;
    bool has_fusion_threshold; /* fixed by the user */
    bool has_cycle_time;
    int warmup_samples; /* samples with the defaults before the first that counts (3) */
    int steps_per_sample; /* at least 1 (10) */
    int max_trials; /* candidates including the defaults; BAYES_OPT_MAX_SAMPLES (20) */
    /* A file name, or NULL. Horovod's format: a line of column names, a line per sample,
     * and in the last line the final setting. Sizes in MiB, times in ms, scores in
     * bytes/us. */
    const char *log;
};

struct hvd_tuner;

/* If the log cannot be written, warns and goes on. The caller owns *out. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_tuner_create(const struct hvd_tuner_options *options, struct hvd_tuner **out,
                     struct hvd_error *err);
void hvd_tuner_destroy(struct hvd_tuner *tuner); /* NULL is fine */

/* Call it when an allreduce of all ranks has ended. name is the tensor's name, the same
 * in each step (copied). Returns true if hvd_tuner_setting has changed. */
bool hvd_tuner_ended(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                     int64_t now_us);

/* Returns the setting that all ranks should use now. */
const struct hvd_tuner_setting *hvd_tuner_setting(const struct hvd_tuner *tuner);

/* Whether the setting is final. */
bool hvd_tuner_is_over(const struct hvd_tuner *tuner);

#endif
