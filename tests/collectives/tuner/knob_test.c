/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner's knobs. */
#include "collectives/tuner/knob.h"

#include "tests/tap.h"

static void test_knobs(void)
{
    const struct hvd_knob_settings settings = {.fusion_threshold = 128 << 20,
                                               .cycle_time_ms = 3};
    struct hvd_knob knobs[HVD_KNOBS];
    const struct hvd_knob *cycle = &knobs[HVD_KNOB_CYCLE_TIME];
    const struct hvd_knob *threshold = &knobs[HVD_KNOB_FUSION_THRESHOLD];
    bool ascends = true;

    hvd_knobs_make(&settings, knobs);
    for (int i = 1; i < cycle->count; i++) {
        ascends &= cycle->values[i] > cycle->values[i - 1];
    }
    tap_ok(ascends && cycle->values[cycle->initial] == 3,
           "a default that is no candidate becomes one, in its place");
    tap_ok(threshold->values[threshold->initial] == 128 << 20 &&
               threshold->values[0] == 0,
           "a default that is one stays the default");
    hvd_knob_add(&knobs[HVD_KNOB_CYCLE_TIME], 3);
    for (int i = 0; i < 20; i++) {
        hvd_knob_add(&knobs[HVD_KNOB_CYCLE_TIME], 100 + i);
    }
    tap_ok(cycle->count == HVD_KNOB_VALUES, "what finds no room is left out");
}

int main(void)
{
    test_knobs();
    return tap_done();
}
