/* SPDX-License-Identifier: Apache-2.0 */
/* What the autotuner may change: a table of knobs, each a short list of candidate values. */
#include "collectives/tuner/knob.h"

#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const double mebibyte = 1024 * 1024;

/* Beyond both ends of what any of the measured jobs gained from: the search tries every second
 * value first and then only goes where it pays. */
static const double thresholds_mib[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256};
static const double cycles_ms[] = {0, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50};

struct hvd_knob hvd_knob_fixed(const char *name, double value)
{
    return (struct hvd_knob){.name = name, .values = {value}, .count = 1};
}

static void insert(struct hvd_knob *knob, int at, double value)
{
    memmove(&knob->values[at + 1], &knob->values[at],
            (size_t)(knob->count - at) * sizeof(value));
    knob->values[at] = value;
    knob->count++;
    knob->initial += at <= knob->initial ? 1 : 0;
}

void hvd_knob_add(struct hvd_knob *knob, double value)
{
    int at = knob->count;

    for (int i = 0; i < knob->count; i++) {
        if (knob->values[i] == value) {
            return;
        }
    }
    if (knob->count == HVD_KNOB_VALUES) {
        return;
    }
    while (knob->is_ordered && at > 0 && knob->values[at - 1] > value) {
        at--;
    }
    insert(knob, at, value);
}

void hvd_knobs_make(const struct hvd_knob_settings *settings, struct hvd_knob *knobs)
{
    struct hvd_knob *threshold = &knobs[HVD_KNOB_FUSION_THRESHOLD];
    struct hvd_knob *cycle = &knobs[HVD_KNOB_CYCLE_TIME];

    *threshold =
        hvd_knob_fixed("tensor_fusion_threshold", (double)settings->fusion_threshold);
    threshold->is_ordered = true;
    for (int i = 0; i < LENGTH(thresholds_mib) && !settings->has_fusion_threshold; i++) {
        hvd_knob_add(threshold, thresholds_mib[i] * mebibyte);
    }
    *cycle = hvd_knob_fixed("cycle_time_ms", settings->cycle_time_ms);
    cycle->is_ordered = true;
    for (int i = 0; i < LENGTH(cycles_ms) && !settings->has_cycle_time; i++) {
        hvd_knob_add(cycle, cycles_ms[i]);
    }
}
