/* SPDX-License-Identifier: Apache-2.0 */
/* A proof is good for one pair of nonces, one pair of ranks, one role, one listening end
 * and one secret; the same holds for keys. */
#include "pmix_boot/sock/handshake.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static const unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES] =
    "the secret of this very job....";
static const struct hvd_handshake_party child = {
    .rank = 5, .size = 6, .secret = secret, .protection = 1};

/* Makes a handshake of rank 5, the child, with rank 2, which listens at 10.0.0.2 port
 * 4711. The parent's challenge is the last message so far. */
static struct hvd_handshake answered(struct hvd_handshake_challenge *challenge)
{
    struct hvd_handshake handshake = {0};

    if (hvd_handshake_begin(&handshake, &child, 2) != 0) {
        exit(98);
    }
    handshake.endpoint = (struct hvd_socket_endpoint){
        .ip = {.version = 4, .bytes = {10, 0, 0, 2}}, .port = 4711};
    hvd_handshake_challenge_make(&handshake, secret, challenge);
    return handshake;
}

static bool is_good(const struct hvd_handshake *handshake, enum hvd_handshake_role role,
                    const unsigned char *proof)
{
    return hvd_handshake_is_proof(handshake, secret, role, proof);
}

/* Returns whether the proof is wrong once any bit of the proof, or of the facts that it
 * covers, is changed. */
static bool any_bit_counts(struct hvd_handshake handshake, enum hvd_handshake_role role)
{
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
    unsigned char *const parts[] = {proof, (unsigned char *)&handshake};
    const size_t bytes[] = {sizeof(proof), sizeof(handshake)};

    hvd_handshake_prove(&handshake, secret, role, proof);
    for (int part = 0; part < 2; part++) {
        for (size_t bit = 0; bit < bytes[part] * 8; bit++) {
            bool is_still_good;

            parts[part][bit / 8] ^= (unsigned char)(1u << (bit % 8));
            is_still_good = is_good(&handshake, role, proof);
            parts[part][bit / 8] ^= (unsigned char)(1u << (bit % 8));
            if (is_still_good) {
                return false;
            }
        }
    }
    return is_good(&handshake, role, proof);
}

static bool are_other_keys(const struct hvd_handshake *one,
                           const struct hvd_handshake *other)
{
    struct hvd_handshake_keys keys, others;

    hvd_handshake_keys_make(one, secret, &keys);
    hvd_handshake_keys_make(other, secret, &others);
    return memcmp(keys.child_seal, others.child_seal, sizeof(keys.child_seal)) != 0 &&
           memcmp(keys.parent_seal, others.parent_seal, sizeof(keys.parent_seal)) != 0 &&
           memcmp(keys.child_cipher, others.child_cipher, sizeof(keys.child_cipher)) != 0;
}

static void keys_are_of_one_connection(void)
{
    struct hvd_handshake_challenge challenge;
    struct hvd_handshake_keys keys, again;
    struct hvd_handshake handshake = answered(&challenge);
    struct hvd_handshake later = answered(&challenge);
    struct hvd_handshake elsewhere = handshake;
    unsigned char stranger[HVD_HANDSHAKE_SECRET_BYTES] = {0};

    elsewhere.endpoint.port++;
    hvd_handshake_keys_make(&handshake, secret, &keys);
    hvd_handshake_keys_make(&handshake, secret, &again);
    tap_ok(memcmp(&keys, &again, sizeof(keys)) == 0, "both ends get the same keys");
    tap_ok(memcmp(keys.child_seal, keys.parent_seal, sizeof(keys.child_seal)) != 0,
           "each direction has its own key");
    hvd_handshake_keys_make(&handshake, stranger, &again);
    tap_ok(memcmp(keys.child_seal, again.child_seal, sizeof(keys.child_seal)) != 0,
           "another secret makes other keys");
    tap_ok(are_other_keys(&handshake, &later), "the next connection has other keys");
    tap_ok(are_other_keys(&handshake, &elsewhere),
           "another listening end has other keys");
}

int main(void)
{
    struct hvd_handshake_challenge challenge, again;
    struct hvd_handshake handshake = answered(&challenge);
    struct hvd_handshake later = answered(&again);
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
    unsigned char stranger[HVD_HANDSHAKE_SECRET_BYTES] = {0};

    tap_ok(handshake.hello.child == 5 && handshake.hello.parent == 2 &&
               handshake.hello.protection == 1,
           "a hello names both ranks and the protection");
    tap_ok(is_good(&handshake, HVD_HANDSHAKE_PARENT, challenge.proof),
           "the parent's proof is good");
    hvd_handshake_prove(&handshake, secret, HVD_HANDSHAKE_CHILD, proof);
    tap_ok(is_good(&handshake, HVD_HANDSHAKE_CHILD, proof), "the child's proof is good");
    tap_ok(!is_good(&handshake, HVD_HANDSHAKE_CHILD, challenge.proof),
           "the parent's proof, sent back, is not a child's proof");
    tap_ok(any_bit_counts(handshake, HVD_HANDSHAKE_CHILD) &&
               any_bit_counts(handshake, HVD_HANDSHAKE_PARENT),
           "every bit counts: of a proof, the hello, the nonces, and the listening end");
    tap_ok(!is_good(&later, HVD_HANDSHAKE_CHILD, proof),
           "a recorded proof does not answer a later challenge");
    tap_ok(!is_good(&later, HVD_HANDSHAKE_PARENT, challenge.proof),
           "a recorded challenge does not answer a later hello");
    hvd_handshake_prove(&handshake, stranger, HVD_HANDSHAKE_CHILD, proof);
    tap_ok(!is_good(&handshake, HVD_HANDSHAKE_CHILD, proof),
           "a proof made with another secret is wrong");
    keys_are_of_one_connection();
    return tap_done();
}
