/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the owners of a shared object. */
#include "gpu_binding/base/refcount.h"

#include <stddef.h>

void hvd_refcount_init(struct hvd_refcount *refcount,
                       void (*end)(struct hvd_refcount *refcount))
{
    atomic_init(&refcount->owners, 1);
    refcount->end = end;
}

struct hvd_refcount *hvd_refcount_keep(struct hvd_refcount *refcount)
{
    if (refcount != NULL) {
        atomic_fetch_add(&refcount->owners, 1);
    }
    return refcount;
}

void hvd_refcount_drop(struct hvd_refcount *refcount)
{
    if (refcount != NULL && atomic_fetch_sub(&refcount->owners, 1) == 1) {
        refcount->end(refcount);
    }
}
