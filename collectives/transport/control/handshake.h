/* SPDX-License-Identifier: Apache-2.0 */
/* How two ranks prove to each other that they know the job secret, without showing it. Pure.
 *
 *   child                                  parent
 *     ── hello      {who, nonce c} ─────────►
 *     ◄─ challenge  {nonce p, proof} ────────   proof over "parent", both ranks, c, p
 *     ── proof ─────────────────────────────►   proof over "child", both ranks, c, p
 *
 * It keeps strangers and other jobs out; it does not protect against somebody who can change
 * packets on the way. */
#ifndef HVD_HANDSHAKE_H
#define HVD_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "pmix_boot/boot.h"

#define HVD_NONCE_BYTES 32
#define HVD_PROOF_BYTES 32
#define HVD_HELLO_MAGIC 0x32647668u /* changes with the protocol */

/* Longest message of the handshake: what a stranger can make us store. */
#define HVD_HANDSHAKE_MAX_BYTES 64

struct hvd_hello {
    uint32_t magic;
    int32_t child;
    int32_t parent;
    uint32_t zero;
    unsigned char nonce[HVD_NONCE_BYTES];
};

struct hvd_challenge {
    unsigned char nonce[HVD_NONCE_BYTES];
    unsigned char proof[HVD_PROOF_BYTES];
};

enum hvd_role {
    HVD_ROLE_CHILD,
    HVD_ROLE_PARENT,
};

/* Starts a handshake: a hello with a fresh nonce. Returns 0 or HVD_ERR_SYS. */
int hvd_hello_make(struct hvd_hello *hello, int child, int parent);

/* The parent's answer. */
void hvd_challenge_make(struct hvd_challenge *challenge, const unsigned char *secret,
                        const struct hvd_hello *hello);

/* The proof that `role` gives for this pair of messages. */
void hvd_proof_make(unsigned char *proof, const unsigned char *secret, enum hvd_role role,
                    const struct hvd_hello *hello, const unsigned char *parent_nonce);

/* In constant time. */
bool hvd_proof_is_good(const unsigned char *proof, const unsigned char *secret,
                       enum hvd_role role, const struct hvd_hello *hello,
                       const unsigned char *parent_nonce);

#endif
