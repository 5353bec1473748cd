/* SPDX-License-Identifier: Apache-2.0 */
/* The best of many settings is found. */
#include "collectives/tuner/tuner_search.h"

#include "tests/tap.h"

static void three_knobs(struct hvd_knob *knobs)
{
    for (int i = 0; i < 3; i++) {
        knobs[i] = hvd_knob_fixed("a", 0);
        knobs[i].is_ordered = i < 2;
        for (int k = 1; k < 8; k++) {
            hvd_knob_add(&knobs[i], k);
        }
    }
}

/* The fifth way of a knob without order is 10 % faster, together with a high second knob. */
static void test_ways(void)
{
    struct hvd_knob knobs[3];
    struct hvd_search *search = NULL;
    const struct hvd_tuner_setting *found;

    three_knobs(knobs);
    if (hvd_search_create(knobs, 3, 40, &search, NULL) != 0) {
        return;
    }
    while (!hvd_search_is_over(search)) {
        const int *index = hvd_search_setting(search)->index;

        hvd_search_tell(search, 100 + index[1] + (index[2] == 4 ? 10 : 0));
    }
    found = hvd_search_setting(search);
    tap_ok(found->index[2] == 4 && found->index[1] >= 6,
           "one way of several is found: %d with %d", found->index[2], found->index[1]);
    hvd_search_destroy(search);
}

int main(void)
{
    test_ways();
    return tap_done();
}
