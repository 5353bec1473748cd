/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of fragments: what was put back comes again, and the pool knows what is out.
 * Fragments of a message: each knows how much of it is to be authenticated. */
#include "collectives/transport/net/net_flow.h"

#include "tests/tap.h"

enum {
    ROUNDS = 1000
};

/* --- what of a message is covered --- */

static size_t sent_bytes, covered_bytes;
static bool are_first; /* what is covered comes before what is not */

static int note_fragment(void *peer, struct hvd_net_fragment *fragment)
{
    (void)peer;
    are_first = are_first && fragment->covered <= fragment->bytes &&
                (fragment->covered == 0 || covered_bytes == sent_bytes);
    sent_bytes += fragment->bytes;
    covered_bytes += fragment->covered;
    return 0;
}

static size_t covered_of(size_t bytes, size_t covered)
{
    static char data[3 * HVD_NET_FRAGMENT_BYTES];
    struct hvd_net_pool pool = {0};
    const struct hvd_net_flow_link link = {.send = note_fragment, .pool = &pool};
    struct hvd_net_op op = {.data = data, .bytes = bytes, .covered = covered};
    struct hvd_net_flow *flow;

    sent_bytes = 0;
    covered_bytes = 0;
    are_first = true;
    if (hvd_net_flow_create(&link, 1, &flow) != 0) {
        exit(98);
    }
    hvd_net_send(flow, &op);
    hvd_net_flow_destroy(flow);
    hvd_net_pool_finish(&pool);
    return op.status == 0 && sent_bytes == bytes ? covered_bytes : SIZE_MAX;
}

static void fragments_know_what_is_covered(void)
{
    const size_t bytes = 3 * HVD_NET_FRAGMENT_BYTES;

    tap_ok(covered_of(bytes, 0) == 0, "nothing of a message is covered unless asked for");
    tap_ok(covered_of(bytes, SIZE_MAX) == bytes, "all, in all its fragments");
    tap_ok(covered_of(bytes, 80) == 80 && are_first, "or its beginning");
    tap_ok(covered_of(bytes, HVD_NET_FRAGMENT_BYTES + 1) == HVD_NET_FRAGMENT_BYTES + 1 &&
               are_first,
           "also where that ends in the second fragment");
}

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
    fragments_know_what_is_covered();
    return tap_done();
}
