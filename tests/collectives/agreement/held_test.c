/* SPDX-License-Identifier: Apache-2.0 */
/* Something that several owners share ends once, with the last of them. */
#include "collectives/agreement/held.h"

#include <stddef.h>

#include "tests/tap.h"

static int ends;

static void end(struct hvd_held *held)
{
    (void)held;
    ends++;
}

int main(void)
{
    struct hvd_held held;

    hvd_held_init(&held, end);
    tap_ok(hvd_held_keep(&held) == &held && hvd_held_keep(&held) == &held,
           "two more owners");
    hvd_held_drop(&held);
    hvd_held_drop(&held);
    tap_ok(ends == 0, "it stays while one is left");
    hvd_held_drop(&held);
    tap_ok(ends == 1, "and ends with that one");
    tap_ok(hvd_held_keep(NULL) == NULL, "nothing may be kept");
    hvd_held_drop(NULL);
    tap_ok(ends == 1, "and dropped");
    return tap_done();
}
