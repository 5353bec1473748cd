/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the keys that messages carry: sender and receiver derive the same key, and each
 * direction between two ranks has its own. */
#include "collectives/transport/net/net_key.h"

#include "collectives/transport/net/net.h"
#include "tests/tap.h"

enum {
    RANKS = 40
};

static int compare(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

int main(void)
{
    unsigned char secret[HVD_NET_SECRET_BYTES] = {1},
                  last_byte_differs[HVD_NET_SECRET_BYTES] = {1};
    static uint64_t keys[RANKS * RANKS + 1];
    int count = 0, twins = 0;

    last_byte_differs[HVD_NET_SECRET_BYTES - 1] = 1;
    tap_ok(hvd_net_key(secret, 3, 5) == hvd_net_key(secret, 3, 5),
           "sender and receiver derive the same key");
    for (int from = 0; from < RANKS; from++) {
        for (int to = 0; to < RANKS; to++) {
            keys[count++] = hvd_net_key(secret, from, to);
        }
    }
    keys[count++] = hvd_net_key(last_byte_differs, 0, 1);
    qsort(keys, (size_t)count, sizeof(keys[0]), compare);
    for (int i = 1; i < count; i++) {
        twins += keys[i] == keys[i - 1];
    }
    tap_ok(twins == 0 && keys[0] != 0,
           "each direction of each pair of ranks has its own key, and so has each job");
    return tap_done();
}
