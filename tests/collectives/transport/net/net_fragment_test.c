/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of fragments reuses fragments and counts those in use. Fragments of a message
 * know how many of their bytes are authenticated. */
#include "collectives/transport/net/net_flow.h"

#include "tests/tap.h"

enum {
    ROUNDS = 1000
};

/* --- authenticated bytes --- */

static size_t sent_bytes, covered_bytes;
static bool are_first; /* authenticated bytes come before all others */

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

    tap_ok(covered_of(bytes, 0) == 0,
           "no byte of a message is authenticated unless asked for");
    tap_ok(covered_of(bytes, SIZE_MAX) == bytes,
           "all bytes can be authenticated, in all fragments");
    tap_ok(covered_of(bytes, 80) == 80 && are_first,
           "only the beginning can be authenticated");
    tap_ok(covered_of(bytes, HVD_NET_FRAGMENT_BYTES + 1) == HVD_NET_FRAGMENT_BYTES + 1 &&
               are_first,
           "the beginning may end in the second fragment");
}

int main(void)
{
    struct hvd_net_pool pool = {0};
    struct hvd_net_fragment *first = hvd_net_pool_get(&pool);
    struct hvd_net_fragment *second = hvd_net_pool_get(&pool);
    int most = 0;

    tap_ok(first != NULL && second != NULL && first != second && pool.taken == 2,
           "two fragments are in use");
    hvd_net_pool_put(&pool, first);
    tap_ok(pool.taken == 1, "a fragment that is put back is no longer in use");
    tap_ok(hvd_net_pool_get(&pool) == first && pool.taken == 2,
           "a fragment that was put back is used again");
    hvd_net_pool_put(&pool, second);
    for (int i = 0; i < ROUNDS; i++) {
        struct hvd_net_fragment *fragment = hvd_net_pool_get(&pool);

        most = pool.taken > most ? pool.taken : most;
        hvd_net_pool_put(&pool, fragment);
    }
    tap_ok(most == 2 && pool.taken == 1, "the count is right after %d more uses", ROUNDS);
    hvd_net_pool_finish(&pool);
    tap_ok(pool.unused == NULL && pool.allocated == NULL,
           "finish also frees fragments that are in use");
    fragments_know_what_is_covered();
    return tap_done();
}
