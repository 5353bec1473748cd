/* SPDX-License-Identifier: Apache-2.0 */
/* How two ranks prove to each other that they know the job secret, without showing it. */
#include "pmix_boot/wire/handshake.h"

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

/* The statement that a proof covers: the role keeps one side's proof from being sent back to it. */
struct statement {
    uint32_t role;
    struct hvd_handshake_hello hello;
    unsigned char parent_nonce[HVD_HANDSHAKE_NONCE_BYTES];
};

int hvd_handshake_hello_make(struct hvd_handshake_hello *hello, int child, int parent)
{
    if (sodium_init() < 0) {
        return HVD_ERR_SYS;
    }
    *hello = (struct hvd_handshake_hello){
        .magic = HVD_HANDSHAKE_MAGIC, .child = child, .parent = parent};
    randombytes_buf(hello->nonce, sizeof(hello->nonce));
    return 0;
}

static struct statement state(enum hvd_handshake_role role,
                              const struct hvd_handshake_hello *hello,
                              const unsigned char *parent_nonce)
{
    struct statement statement = {.role = (uint32_t)role, .hello = *hello};

    memcpy(statement.parent_nonce, parent_nonce, sizeof(statement.parent_nonce));
    return statement;
}

void hvd_handshake_prove(unsigned char *proof, const unsigned char *secret,
                         enum hvd_handshake_role role,
                         const struct hvd_handshake_hello *hello,
                         const unsigned char *parent_nonce)
{
    struct statement statement = state(role, hello, parent_nonce);

    crypto_auth(proof, (const unsigned char *)&statement, sizeof(statement), secret);
}

bool hvd_handshake_is_proof(const unsigned char *proof, const unsigned char *secret,
                            enum hvd_handshake_role role,
                            const struct hvd_handshake_hello *hello,
                            const unsigned char *parent_nonce)
{
    struct statement statement = state(role, hello, parent_nonce);

    return crypto_auth_verify(proof, (const unsigned char *)&statement, sizeof(statement),
                              secret) == 0;
}

void hvd_handshake_challenge_make(struct hvd_handshake_challenge *challenge,
                                  const unsigned char *secret,
                                  const struct hvd_handshake_hello *hello)
{
    randombytes_buf(challenge->nonce, sizeof(challenge->nonce));
    hvd_handshake_prove(challenge->proof, secret, HVD_HANDSHAKE_PARENT, hello,
                        challenge->nonce);
}
