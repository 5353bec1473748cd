/* SPDX-License-Identifier: Apache-2.0 */
/* Something that several owners share, and that ends with the last of them. It is the first member
 * of what it is a part of. Any thread. */
#ifndef HVD_HELD_H
#define HVD_HELD_H

#include <stdatomic.h>

struct hvd_held {
    _Atomic int owners;
    void (*end)(struct hvd_held *held);
};

void hvd_held_init(struct hvd_held *held,
                   void (*end)(struct hvd_held *held)); /* 1 owner */
struct hvd_held *hvd_held_keep(struct hvd_held *held); /* one more; NULL is fine */
void hvd_held_drop(struct hvd_held *held); /* one less; NULL is fine */

#endif
