/* SPDX-License-Identifier: Apache-2.0 */
/* Something that several owners share ends once, with the last of them. */
#include "gpu_binding/base/refcount.h"

#include <stddef.h>

#include "tests/tap.h"

static int ends;

static void end(struct hvd_refcount *refcount)
{
    (void)refcount;
    ends++;
}

int main(void)
{
    struct hvd_refcount refcount;

    hvd_refcount_init(&refcount, end);
    tap_ok(hvd_refcount_keep(&refcount) == &refcount &&
               hvd_refcount_keep(&refcount) == &refcount,
           "two more owners");
    hvd_refcount_drop(&refcount);
    hvd_refcount_drop(&refcount);
    tap_ok(ends == 0, "it stays while one is left");
    hvd_refcount_drop(&refcount);
    tap_ok(ends == 1, "and ends with that one");
    tap_ok(hvd_refcount_keep(NULL) == NULL, "nothing may be kept");
    hvd_refcount_drop(NULL);
    tap_ok(ends == 1, "and dropped");
    return tap_done();
}
