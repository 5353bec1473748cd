/* SPDX-License-Identifier: Apache-2.0 */
/* What a message carries to show that it is of this job: 64 bits for each pair of ranks and
 * direction, derived from the job secret.
 *
 * The key stands in the message as it is. It keeps out everybody who can reach a rank but not read
 * its messages; it does not protect against those who can read or change packets on the way. */
#ifndef HVD_NET_KEY_H
#define HVD_NET_KEY_H

#include <stdint.h>

/* secret: HVD_NET_SECRET_BYTES. from, to: ranks. Costs a microsecond: to be kept. */
uint64_t hvd_net_key(const unsigned char *secret, int from, int to);

#endif
