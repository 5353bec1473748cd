/* SPDX-License-Identifier: Apache-2.0 */
/* A proof is good for one pair of nonces, one pair of ranks, one role and one secret. */
#include "pmix_boot/wire/handshake.h"

#include <string.h>

#include "tests/tap.h"

static const unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES] =
    "the secret of this very job....";

static bool is_good(const unsigned char *proof, enum hvd_handshake_role role,
                    const struct hvd_handshake_hello *hello, const unsigned char *nonce)
{
    return hvd_handshake_is_proof(proof, secret, role, hello, nonce);
}

/* A proof with any one bit changed is wrong. */
static bool any_bit_counts(const unsigned char *proof, enum hvd_handshake_role role,
                           const struct hvd_handshake_hello *hello,
                           const unsigned char *nonce)
{
    unsigned char changed[HVD_HANDSHAKE_PROOF_BYTES];

    for (int bit = 0; bit < HVD_HANDSHAKE_PROOF_BYTES * 8; bit++) {
        memcpy(changed, proof, sizeof(changed));
        changed[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        if (is_good(changed, role, hello, nonce)) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    struct hvd_handshake_hello hello;
    struct hvd_handshake_hello other;
    struct hvd_handshake_challenge challenge;
    struct hvd_handshake_challenge again;
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
    unsigned char stranger[HVD_HANDSHAKE_SECRET_BYTES] = {0};

    tap_ok(hvd_handshake_hello_make(&hello, 5, 2) == 0 && hello.child == 5 &&
               hello.parent == 2,
           "a hello says who comes to whom");
    hvd_handshake_challenge_make(&challenge, secret, &hello);
    tap_ok(is_good(challenge.proof, HVD_HANDSHAKE_PARENT, &hello, challenge.nonce),
           "the parent's proof is good");
    hvd_handshake_prove(proof, secret, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce);
    tap_ok(is_good(proof, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce),
           "the child's proof is good");
    tap_ok(!is_good(challenge.proof, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce),
           "the parent's proof sent back is no child's proof");
    tap_ok(any_bit_counts(proof, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce),
           "every bit of a proof counts");

    hvd_handshake_challenge_make(&again, secret, &hello);
    tap_ok(!is_good(proof, HVD_HANDSHAKE_CHILD, &hello, again.nonce),
           "a recorded proof does not answer a later challenge");
    hvd_handshake_hello_make(&other, 5, 2);
    tap_ok(!is_good(challenge.proof, HVD_HANDSHAKE_PARENT, &other, challenge.nonce),
           "a recorded challenge does not answer a later hello");
    other = hello;
    other.child = 6;
    tap_ok(!is_good(proof, HVD_HANDSHAKE_CHILD, &other, challenge.nonce),
           "a proof is no other rank's");

    hvd_handshake_prove(proof, stranger, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce);
    tap_ok(!is_good(proof, HVD_HANDSHAKE_CHILD, &hello, challenge.nonce),
           "a proof made with another secret is wrong");
    return tap_done();
}
