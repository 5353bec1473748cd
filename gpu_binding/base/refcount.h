/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the owners of a shared object, which ends with its last owner. The count is the
 * first member of the object. Any thread may call these functions. */
#ifndef HVD_REFCOUNT_H
#define HVD_REFCOUNT_H

#include <stdatomic.h>

struct hvd_refcount {
    _Atomic int owners;
    void (*end)(struct hvd_refcount *refcount);
};

/* Starts with one owner. `end` is called when there is no owner left. */
void hvd_refcount_init(struct hvd_refcount *refcount,
                       void (*end)(struct hvd_refcount *refcount));
/* adds an owner; NULL is fine */
struct hvd_refcount *hvd_refcount_keep(struct hvd_refcount *refcount);
/* removes an owner; NULL is fine */
void hvd_refcount_drop(struct hvd_refcount *refcount);

#endif
