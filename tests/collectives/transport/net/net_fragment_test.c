/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of fragments: what was put back comes again, and the pool knows what is out. */
#include "collectives/transport/net/net_flow.h"

#include "tests/tap.h"

enum {
    ROUNDS = 1000
};

int main(void)
{
    struct hvd_net_pool pool = {0};
    struct hvd_net_fragment *first = hvd_net_pool_get(&pool);
    struct hvd_net_fragment *second = hvd_net_pool_get(&pool);
    int most = 0;

    tap_ok(first != NULL && second != NULL && first != second && pool.taken == 2,
           "two fragments are out");
    hvd_net_pool_put(&pool, first);
    tap_ok(pool.taken == 1, "one is, when the other is put back");
    tap_ok(hvd_net_pool_get(&pool) == first && pool.taken == 2,
           "what was put back comes again, and is out again");
    hvd_net_pool_put(&pool, second);
    for (int i = 0; i < ROUNDS; i++) {
        struct hvd_net_fragment *fragment = hvd_net_pool_get(&pool);

        most = pool.taken > most ? pool.taken : most;
        hvd_net_pool_put(&pool, fragment);
    }
    tap_ok(most == 2 && pool.taken == 1, "%d uses later the count is right", ROUNDS);
    hvd_net_pool_finish(&pool);
    tap_ok(pool.unused == NULL && pool.allocated == NULL,
           "finish frees what is out, too");
    return tap_done();
}
