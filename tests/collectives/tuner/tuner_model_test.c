/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner's knobs, and what it expects of settings that it has not tried. */
#include "collectives/tuner/tuner_model.h"

#include <math.h>

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

static void two_knobs(struct hvd_knob *knobs)
{
    for (int i = 0; i < 2; i++) {
        knobs[i] = hvd_knob_fixed("a", 0);
        knobs[i].is_ordered = true;
        for (int k = 1; k < 8; k++) {
            hvd_knob_add(&knobs[i], k);
        }
    }
}

static void test_model(void)
{
    const struct hvd_tuner_setting here = {{3, 3}}, beside = {{3, 4}}, far = {{7, 7}};
    struct hvd_knob knobs[2];
    struct hvd_model *model = NULL;
    double at[3], off[3];

    two_knobs(knobs);
    if (hvd_model_create(knobs, 2, 4, &model, NULL) != 0) {
        return;
    }
    hvd_model_add(model, &here, 0.2, 0.005);
    hvd_model_add(model, &far, -0.2, 0.005);
    hvd_model_add(model, &far, -0.22, 0.005);
    hvd_model_fit(model);
    hvd_model_predict(model, &here, &at[0], &off[0]);
    hvd_model_predict(model, &beside, &at[1], &off[1]);
    hvd_model_predict(model, &far, &at[2], &off[2]);
    tap_ok(fabs(at[0] - 0.2) < 0.01 && fabs(at[2] + 0.21) < 0.01,
           "what was sampled is expected again");
    tap_ok(at[1] > at[2] && at[1] < at[0] && off[1] > 3 * off[0],
           "what is beside it is like it, with less certainty");
    tap_ok(off[2] < off[0], "what was sampled twice is known better");
    tap_ok(hvd_expected_improvement(0.1, 0.05, 0) > 0.1 &&
               hvd_expected_improvement(-0.1, 0.05, 0) < 0.01 &&
               hvd_expected_improvement(-0.1, 0.05, 0) > 0,
           "what looks worse may still be better");
    hvd_model_destroy(model);
}

int main(void)
{
    test_knobs();
    test_model();
    return tap_done();
}
