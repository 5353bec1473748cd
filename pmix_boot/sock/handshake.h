/* SPDX-License-Identifier: Apache-2.0 */
/* How two ranks prove to each other that they know the job secret, without showing it,
 * and agree on keys for their connection. Pure.
 *
 *   child                                          parent
 *     ── hello      {who, nonce c} ─────────────────►
 *     ◄─ challenge  {nonce p, endpoint, proof} ──────   over "parent", hello, p, endpoint
 *     ── proof ─────────────────────────────────────►   over "child", hello, p, endpoint
 *
 * The endpoint is the address and port of the listening end, as the parent sees it. The
 * child goes on only if it has connected to that very endpoint: a stranger at another
 * address cannot pass the proofs on between the two. Should one do so at the same
 * address, the keys are the ranks' alone: they are derived from the secret and from all
 * of the above, and authenticate (seal.h) what follows. */
#ifndef HVD_HANDSHAKE_H
#define HVD_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "pmix_boot/sock/seal.h"
#include "pmix_boot/sock/socket.h"

#define HVD_HANDSHAKE_SECRET_BYTES 32 /* of the job */
#define HVD_HANDSHAKE_NONCE_BYTES 32
#define HVD_HANDSHAKE_PROOF_BYTES 32
#define HVD_HANDSHAKE_MAGIC 0x33647668u /* changes with the protocol */

/* Longest message of the handshake: what a stranger can make us store. */
#define HVD_HANDSHAKE_MAX_BYTES 96

struct hvd_handshake_hello {
    uint32_t magic;
    int32_t child;
    int32_t parent;
    /* of what follows; the user's of the handshake gives it a meaning */
    uint32_t protection;
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
};

struct hvd_handshake_challenge {
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
    struct hvd_socket_endpoint endpoint;
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
};

/* A rank of a job, as it shows itself to others. */
struct hvd_handshake_party {
    int rank;
    int size; /* of the job */
    const unsigned char *secret; /* HVD_HANDSHAKE_SECRET_BYTES */
    uint32_t protection; /* the same at both ends */
};

enum hvd_handshake_role {
    HVD_HANDSHAKE_CHILD,
    HVD_HANDSHAKE_PARENT,
};

/* Both ends know these facts in the end. Proofs and keys cover all of them. */
struct hvd_handshake {
    struct hvd_handshake_hello hello;
    unsigned char parent_nonce[HVD_HANDSHAKE_NONCE_BYTES];
    struct hvd_socket_endpoint endpoint;
};

/* One key for each direction: the child's is for what the child sends. Zeroed keys are
 * for tests only. */
struct hvd_handshake_keys {
    unsigned char child_seal[HVD_SEAL_KEY_BYTES];
    unsigned char parent_seal[HVD_SEAL_KEY_BYTES];
    unsigned char child_cipher[HVD_SEAL_KEY_BYTES]; /* for what is encrypted */
};

/* Starts a handshake at the child: fills in the hello, with a fresh nonce. Returns 0 or
 * HVD_ERR_SYS. */
int hvd_handshake_begin(struct hvd_handshake *handshake,
                        const struct hvd_handshake_party *child, int parent);

/* The parent's answer to the hello and the endpoint of the handshake; keeps the nonce
 * there. */
void hvd_handshake_challenge_make(struct hvd_handshake *handshake,
                                  const unsigned char *secret,
                                  struct hvd_handshake_challenge *challenge);

/* The proof that `role` gives. */
void hvd_handshake_prove(const struct hvd_handshake *handshake,
                         const unsigned char *secret, enum hvd_handshake_role role,
                         unsigned char *proof);

/* In constant time. */
bool hvd_handshake_is_proof(const struct hvd_handshake *handshake,
                            const unsigned char *secret, enum hvd_handshake_role role,
                            const unsigned char *proof);

/* The keys of this connection. */
void hvd_handshake_keys_make(const struct hvd_handshake *handshake,
                             const unsigned char *secret,
                             struct hvd_handshake_keys *keys);

#endif
