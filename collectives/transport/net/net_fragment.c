/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of messages on their way out, and the pool they come from. */
#include "collectives/transport/net/net_fragment.h"

#include <stdlib.h>

struct hvd_net_fragment *hvd_net_pool_get(struct hvd_net_pool *pool)
{
    struct hvd_net_fragment *fragment = pool->unused;

    if (fragment != NULL) {
        pool->unused = fragment->next_unused;
        pool->taken++;
        return fragment;
    }
    fragment = malloc(sizeof(*fragment));
    if (fragment != NULL) {
        fragment->next_allocated = pool->allocated;
        pool->allocated = fragment;
        pool->taken++;
    }
    return fragment;
}

void hvd_net_pool_put(struct hvd_net_pool *pool, struct hvd_net_fragment *fragment)
{
    fragment->next_unused = pool->unused;
    pool->unused = fragment;
    pool->taken--;
}

void hvd_net_pool_finish(struct hvd_net_pool *pool)
{
    while (pool->allocated != NULL) {
        struct hvd_net_fragment *fragment = pool->allocated;

        pool->allocated = fragment->next_allocated;
        free(fragment);
    }
    pool->unused = NULL;
}
