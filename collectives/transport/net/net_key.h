/* SPDX-License-Identifier: Apache-2.0 */
/* The key that a message carries as proof that it belongs to this job: 64 bits for each
 * ordered pair of ranks, derived from the job secret.
 *
 * The key travels in the clear. It stops attackers that can reach a rank but cannot read
 * its messages; it does not stop those that can read or change packets on the way. */
#ifndef HVD_NET_KEY_H
#define HVD_NET_KEY_H

#include <stdint.h>

/* Returns the key. secret has HVD_NET_SECRET_BYTES; from and to are ranks. Takes a
 * microsecond: keep the result. */
uint64_t hvd_net_key(const unsigned char *secret, int from, int to);

#endif
