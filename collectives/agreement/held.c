/* SPDX-License-Identifier: Apache-2.0 */
/* Something that several owners share. */
#include "collectives/agreement/held.h"

#include <stddef.h>

void hvd_held_init(struct hvd_held *held, void (*end)(struct hvd_held *held))
{
    atomic_init(&held->owners, 1);
    held->end = end;
}

struct hvd_held *hvd_held_keep(struct hvd_held *held)
{
    if (held != NULL) {
        atomic_fetch_add(&held->owners, 1);
    }
    return held;
}

void hvd_held_drop(struct hvd_held *held)
{
    if (held != NULL && atomic_fetch_sub(&held->owners, 1) == 1) {
        held->end(held);
    }
}
