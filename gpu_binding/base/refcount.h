/* SPDX-License-Identifier: Apache-2.0 */
/* A count of the owners of something shared, which ends with the last of them. It is the
 * first member of what it counts. Any thread. */
#ifndef HVD_REFCOUNT_H
#define HVD_REFCOUNT_H

#include <stdatomic.h>

struct hvd_refcount {
    _Atomic int owners;
    void (*end)(struct hvd_refcount *refcount);
};

/* Begins with one owner. end is called when there is none left. */
void hvd_refcount_init(struct hvd_refcount *refcount,
                       void (*end)(struct hvd_refcount *refcount));
/* one more owner; NULL is fine */
struct hvd_refcount *hvd_refcount_keep(struct hvd_refcount *refcount);
void hvd_refcount_drop(struct hvd_refcount *refcount); /* one less; NULL is fine */

#endif
