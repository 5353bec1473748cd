/* SPDX-License-Identifier: Apache-2.0 */
/* What the autotuner may change: a table of knobs, each a short list of candidate values.
 *
 * Whatever the runtime can choose at a step boundary, the same on all ranks, can be a knob: a
 * size, a time, or one of several algorithms. The search knows nothing of what a knob does. */
#ifndef HVD_KNOB_H
#define HVD_KNOB_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HVD_KNOB_VALUES = 16,
};

/* The knobs of the runtime, by index. A new one comes here, into hvd_knobs_make, and to where
 * the runtime takes its value. */
enum hvd_knob_index {
    HVD_KNOB_CYCLE_TIME, /* ms; first: what fusion can gather depends on it */
    HVD_KNOB_FUSION_THRESHOLD, /* bytes */
    HVD_KNOBS
};

struct hvd_knob {
    const char *name; /* its column in the log */
    double values[HVD_KNOB_VALUES];
    int count; /* 1: it is fixed */
    int initial; /* index of the value that holds without tuning */
    bool
        is_ordered; /* values ascend and neighbours act alike; else: one of several ways */
};

/* A knob that has one value, its initial one. name is borrowed. */
struct hvd_knob hvd_knob_fixed(const char *name, double value);

/* One more candidate; nothing happens when it is there already or when there is no room. */
void hvd_knob_add(struct hvd_knob *knob, double value);

/* What the user has chosen, or else the defaults. */
struct hvd_knob_settings {
    int64_t fusion_threshold; /* bytes */
    bool has_fusion_threshold; /* the user chose it: fixed */
    double cycle_time_ms;
    bool has_cycle_time;
};

/* knobs: [HVD_KNOBS] */
void hvd_knobs_make(const struct hvd_knob_settings *settings, struct hvd_knob *knobs);

#endif
