/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs that two ranks know the job secret, and the keys of their connection. */
#include "pmix_boot/sock/handshake.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

static_assert(HVD_HANDSHAKE_SECRET_BYTES == crypto_auth_KEYBYTES,
              "the secret is the key");
static_assert(HVD_HANDSHAKE_PROOF_BYTES == crypto_auth_BYTES,
              "a proof is an authenticator");
static_assert(sizeof(struct hvd_handshake_hello) <= HVD_HANDSHAKE_MAX_BYTES,
              "a hello fits");
static_assert(sizeof(struct hvd_handshake_challenge) <= HVD_HANDSHAKE_MAX_BYTES,
              "a challenge fits");

/* Each proof and key is derived for one purpose, and useless for the others. */
enum purpose {
    PURPOSE_CHILD_PROOF = HVD_HANDSHAKE_CHILD,
    PURPOSE_PARENT_PROOF = HVD_HANDSHAKE_PARENT,
    PURPOSE_CHILD_SEAL,
    PURPOSE_PARENT_SEAL,
    PURPOSE_CHILD_CIPHER,
};

/* Input of all proofs and keys. It has no padding, because they cover all its bytes. */
struct statement {
    uint32_t purpose;
    struct hvd_handshake handshake;
};

static_assert(sizeof(struct statement) ==
                  sizeof(uint32_t) + sizeof(struct hvd_handshake_hello) +
                      HVD_HANDSHAKE_NONCE_BYTES + sizeof(struct hvd_socket_endpoint),
              "a statement has no padding");

int hvd_handshake_begin(struct hvd_handshake *handshake,
                        const struct hvd_handshake_party *child, int parent)
{
    if (sodium_init() < 0) {
        return HVD_ERR_SYS;
    }
    *handshake = (struct hvd_handshake){.hello = {.magic = HVD_HANDSHAKE_MAGIC,
                                                  .child = child->rank,
                                                  .parent = parent,
                                                  .protection = child->protection}};
    randombytes_buf(handshake->hello.nonce, sizeof(handshake->hello.nonce));
    return 0;
}

static void derive_key(const struct hvd_handshake *handshake, const unsigned char *secret,
                       enum purpose purpose, unsigned char *out)
{
    const struct statement statement = {.purpose = (uint32_t)purpose,
                                        .handshake = *handshake};

    crypto_auth(out, (const unsigned char *)&statement, sizeof(statement), secret);
}

void hvd_handshake_prove(const struct hvd_handshake *handshake,
                         const unsigned char *secret, enum hvd_handshake_role role,
                         unsigned char *proof)
{
    derive_key(handshake, secret, (enum purpose)role, proof);
}

bool hvd_handshake_is_proof(const struct hvd_handshake *handshake,
                            const unsigned char *secret, enum hvd_handshake_role role,
                            const unsigned char *proof)
{
    unsigned char right[HVD_HANDSHAKE_PROOF_BYTES];

    hvd_handshake_prove(handshake, secret, role, right);
    return sodium_memcmp(right, proof, sizeof(right)) == 0;
}

void hvd_handshake_challenge_make(struct hvd_handshake *handshake,
                                  const unsigned char *secret,
                                  struct hvd_handshake_challenge *challenge)
{
    randombytes_buf(handshake->parent_nonce, sizeof(handshake->parent_nonce));
    memcpy(challenge->nonce, handshake->parent_nonce, sizeof(challenge->nonce));
    challenge->endpoint = handshake->endpoint;
    hvd_handshake_prove(handshake, secret, HVD_HANDSHAKE_PARENT, challenge->proof);
}

void hvd_handshake_keys_make(const struct hvd_handshake *handshake,
                             const unsigned char *secret, struct hvd_handshake_keys *keys)
{
    static_assert(HVD_SEAL_KEY_BYTES == crypto_auth_BYTES, "a key is an authenticator");
    derive_key(handshake, secret, PURPOSE_CHILD_SEAL, keys->child_seal);
    derive_key(handshake, secret, PURPOSE_PARENT_SEAL, keys->parent_seal);
    derive_key(handshake, secret, PURPOSE_CHILD_CIPHER, keys->child_cipher);
}
