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

#define HVD_HANDSHAKE_SECRET_BYTES 32 /* of the job */
#define HVD_HANDSHAKE_NONCE_BYTES 32
#define HVD_HANDSHAKE_PROOF_BYTES 32
#define HVD_HANDSHAKE_MAGIC 0x32647668u /* changes with the protocol */

/* Longest message of the handshake: what a stranger can make us store. */
#define HVD_HANDSHAKE_MAX_BYTES 64

struct hvd_handshake_hello {
    uint32_t magic;
    int32_t child;
    int32_t parent;
    uint32_t zero;
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
};

struct hvd_handshake_challenge {
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
};

/* A rank of a job, as it shows itself to others. */
struct hvd_handshake_party {
    int rank;
    int size; /* of the job */
    const unsigned char *secret; /* HVD_HANDSHAKE_SECRET_BYTES */
};

enum hvd_handshake_role {
    HVD_HANDSHAKE_CHILD,
    HVD_HANDSHAKE_PARENT,
};

/* Starts a handshake: a hello with a fresh nonce. Returns 0 or HVD_ERR_SYS. */
int hvd_handshake_hello_make(struct hvd_handshake_hello *hello, int child, int parent);

/* The parent's answer. */
void hvd_handshake_challenge_make(struct hvd_handshake_challenge *challenge,
                                  const unsigned char *secret,
                                  const struct hvd_handshake_hello *hello);

/* The proof that `role` gives for this pair of messages. */
void hvd_handshake_prove(unsigned char *proof, const unsigned char *secret,
                         enum hvd_handshake_role role,
                         const struct hvd_handshake_hello *hello,
                         const unsigned char *parent_nonce);

/* In constant time. */
bool hvd_handshake_is_proof(const unsigned char *proof, const unsigned char *secret,
                            enum hvd_handshake_role role,
                            const struct hvd_handshake_hello *hello,
                            const unsigned char *parent_nonce);

#endif
