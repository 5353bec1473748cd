/* SPDX-License-Identifier: Apache-2.0 */
/* A proof is good for one pair of nonces, one pair of ranks, one role and one secret. */
#include "collectives/transport/control/handshake.h"

#include <string.h>

#include "tests/tap.h"

static const unsigned char secret[HVD_SECRET_BYTES] = "the secret of this very job....";

static bool is_good(const unsigned char *proof, enum hvd_role role,
                    const struct hvd_hello *hello, const unsigned char *nonce)
{
    return hvd_proof_is_good(proof, secret, role, hello, nonce);
}

/* A proof with any one bit changed is wrong. */
static bool any_bit_counts(const unsigned char *proof, enum hvd_role role,
                           const struct hvd_hello *hello, const unsigned char *nonce)
{
    unsigned char changed[HVD_PROOF_BYTES];

    for (int bit = 0; bit < HVD_PROOF_BYTES * 8; bit++) {
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
    struct hvd_hello hello;
    struct hvd_hello other;
    struct hvd_challenge challenge;
    struct hvd_challenge again;
    unsigned char proof[HVD_PROOF_BYTES];
    unsigned char stranger[HVD_SECRET_BYTES] = {0};

    tap_ok(hvd_hello_make(&hello, 5, 2) == 0 && hello.child == 5 && hello.parent == 2,
           "a hello says who comes to whom");
    hvd_challenge_make(&challenge, secret, &hello);
    tap_ok(is_good(challenge.proof, HVD_ROLE_PARENT, &hello, challenge.nonce),
           "the parent's proof is good");
    hvd_proof_make(proof, secret, HVD_ROLE_CHILD, &hello, challenge.nonce);
    tap_ok(is_good(proof, HVD_ROLE_CHILD, &hello, challenge.nonce),
           "the child's proof is good");
    tap_ok(!is_good(challenge.proof, HVD_ROLE_CHILD, &hello, challenge.nonce),
           "the parent's proof sent back is no child's proof");
    tap_ok(any_bit_counts(proof, HVD_ROLE_CHILD, &hello, challenge.nonce),
           "every bit of a proof counts");

    hvd_challenge_make(&again, secret, &hello);
    tap_ok(!is_good(proof, HVD_ROLE_CHILD, &hello, again.nonce),
           "a recorded proof does not answer a later challenge");
    hvd_hello_make(&other, 5, 2);
    tap_ok(!is_good(challenge.proof, HVD_ROLE_PARENT, &other, challenge.nonce),
           "a recorded challenge does not answer a later hello");
    other = hello;
    other.child = 6;
    tap_ok(!is_good(proof, HVD_ROLE_CHILD, &other, challenge.nonce),
           "a proof is no other rank's");

    hvd_proof_make(proof, stranger, HVD_ROLE_CHILD, &hello, challenge.nonce);
    tap_ok(!is_good(proof, HVD_ROLE_CHILD, &hello, challenge.nonce),
           "a proof made with another secret is wrong");
    return tap_done();
}
