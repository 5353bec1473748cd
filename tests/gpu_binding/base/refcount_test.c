/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a shared object ends once, with its last owner. */
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
           "an owner can add two more");
    hvd_refcount_drop(&refcount);
    hvd_refcount_drop(&refcount);
    tap_ok(ends == 0, "the object stays while one owner is left");
    hvd_refcount_drop(&refcount);
    tap_ok(ends == 1, "the object ends with its last owner");
    tap_ok(hvd_refcount_keep(NULL) == NULL, "NULL may be kept");
    hvd_refcount_drop(NULL);
    tap_ok(ends == 1, "NULL may be dropped");
    return tap_done();
}
