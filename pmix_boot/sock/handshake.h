/* SPDX-License-Identifier: Apache-2.0 */
/* How two ranks prove to each other that they know the job secret, without showing it,
 * and agree on keys for their connection. The child is the rank that connects, the parent
 * the one that accepts. Pure.
 *
 *   child                                          parent
 *     ── hello      {who, nonce c} ─────────────────►
 *     ◄─ challenge  {nonce p, endpoint, proof} ──────   over "parent", hello, p, endpoint
 *     ── proof ─────────────────────────────────────►   over "child", hello, p, endpoint
 *
 * The endpoint is the address and port of the listening end, as the parent sees it. The
 * child continues only if it has connected to that very endpoint, so a stranger at
 * another address cannot relay the proofs. A stranger that relays at the same address
 * does not learn the keys: they are derived from the secret and from all of the above,
 * and authenticate (seal.h) all later messages. */
#ifndef HVD_HANDSHAKE_H
#define HVD_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "pmix_boot/sock/seal.h"
#include "pmix_boot/sock/socket.h"

#define HVD_HANDSHAKE_SECRET_BYTES 32 /* length of the job's secret */
#define HVD_HANDSHAKE_NONCE_BYTES 32
#define HVD_HANDSHAKE_PROOF_BYTES 32
#define HVD_HANDSHAKE_MAGIC 0x33647668u /* changes with the protocol */

/* Longest message of the handshake: a stranger cannot make us store more. */
#define HVD_HANDSHAKE_MAX_BYTES 96

struct hvd_handshake_hello {
    uint32_t magic;
    int32_t child;
    int32_t parent;
    /* how later messages are protected; the users of the handshake define it */
    uint32_t protection;
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
};

struct hvd_handshake_challenge {
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
    struct hvd_socket_endpoint endpoint;
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
};

/* A rank that takes part in a handshake. */
struct hvd_handshake_party {
    int rank;
    int size; /* number of ranks in the job */
    const unsigned char *secret; /* HVD_HANDSHAKE_SECRET_BYTES bytes */
    uint32_t protection; /* the same at both ends */
};

enum hvd_handshake_role {
    HVD_HANDSHAKE_CHILD,
    HVD_HANDSHAKE_PARENT,
};

/* Facts that both ends know after the handshake. Proofs and keys cover all of them. */
struct hvd_handshake {
    struct hvd_handshake_hello hello;
    unsigned char parent_nonce[HVD_HANDSHAKE_NONCE_BYTES];
    struct hvd_socket_endpoint endpoint;
};

/* Keys of a connection: child_seal is for messages of the child, parent_seal for those of
 * the parent. Zeroed keys are for tests only. */
struct hvd_handshake_keys {
    unsigned char child_seal[HVD_SEAL_KEY_BYTES];
    unsigned char parent_seal[HVD_SEAL_KEY_BYTES];
    /* encrypts the child's data if the connection is encrypted */
    unsigned char child_cipher[HVD_SEAL_KEY_BYTES];
};

/* Starts a handshake at the child: fills in the hello, with a fresh nonce. Returns 0 or
 * HVD_ERR_SYS. */
int hvd_handshake_begin(struct hvd_handshake *handshake,
                        const struct hvd_handshake_party *child, int parent);

/* Makes the parent's answer from the hello and the endpoint in `handshake`, and stores
 * the parent's nonce there. */
void hvd_handshake_challenge_make(struct hvd_handshake *handshake,
                                  const unsigned char *secret,
                                  struct hvd_handshake_challenge *challenge);

/* Makes the proof of `role`. */
void hvd_handshake_prove(const struct hvd_handshake *handshake,
                         const unsigned char *secret, enum hvd_handshake_role role,
                         unsigned char *proof);

/* Checks a proof in constant time. */
bool hvd_handshake_is_proof(const struct hvd_handshake *handshake,
                            const unsigned char *secret, enum hvd_handshake_role role,
                            const unsigned char *proof);

/* Derives the keys of the connection. */
void hvd_handshake_keys_make(const struct hvd_handshake *handshake,
                             const unsigned char *secret,
                             struct hvd_handshake_keys *keys);

#endif
