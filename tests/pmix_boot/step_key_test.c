/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a job depends on the key of its step. */
#include "pmix_boot/step_key.h"

#include <string.h>

#include "tests/tap.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SERVER "PMIX_NAMESPACE=slurm.pmix.7.0"

struct secret {
    unsigned char bytes[HVD_HANDSHAKE_SECRET_BYTES];
};

static struct secret mix(const char *first, const char *second)
{
    const char *const environment[] = {"HOME=/", first, second, NULL};
    struct secret secret = {{1, 2, 3}};

    hvd_step_key_mix(secret.bytes, environment);
    return secret;
}

static struct secret mix_service(const char *variable)
{
    const char *const environment[] = {variable, NULL};
    struct secret secret = {{1, 2, 3}};

    hvd_step_key_mix_service(secret.bytes, environment);
    return secret;
}

static bool is_same(struct secret one, struct secret other)
{
    return memcmp(one.bytes, other.bytes, sizeof(one.bytes)) == 0;
}

static int mix_users(const char *variable, struct secret *secret, struct hvd_error *err)
{
    const char *const environment[] = {variable, NULL};

    *secret = (struct secret){{1, 2, 3}};
    return hvd_step_key_mix_users(secret->bytes, environment, err);
}

static void test_users(const struct secret published)
{
    struct secret one, other, none;
    struct hvd_error err = {0};

    tap_ok(mix_users("HVD_SECRET=0123456789abcdef", &one, &err) == 0 &&
               mix_users("HVD_SECRET=0123456789abcdeF", &other, &err) == 0 &&
               !is_same(one, published) && !is_same(one, other),
           "the secret of the job depends on the user's secret");
    tap_ok(mix_users("HVD_SECRET=" KEY KEY KEY, &one, &err) == 0 &&
               mix_users("HVD_SECRET=" KEY KEY OTHER, &other, &err) == 0 &&
               !is_same(one, published) && !is_same(one, other),
           "the secret of the job depends on every character of a long user's secret");
    tap_ok(mix_users("HVD_SECRET=", &none, &err) == 0 && is_same(none, published) &&
               mix_users("HOME=/", &none, &err) == 0 && is_same(none, published),
           "an empty user's secret changes nothing");
    tap_ok(mix_users("HVD_SECRET=0123456789abcde", &none, &err) == HVD_ERR_ARG &&
               is_same(none, published) && strstr(err.text, "at least 16") != NULL &&
               strstr(err.text, "abcde") == NULL,
           "a user's secret that can be guessed is rejected, and not shown");
}

static void test_number(void)
{
    const struct secret one = {{1, 2, 3}}, other = {{1, 2, 4}};
    uint64_t begin;

    memcpy(&begin, one.bytes, sizeof(begin));
    tap_ok(hvd_step_key_number(one.bytes) == hvd_step_key_number(one.bytes) &&
               hvd_step_key_number(one.bytes) != hvd_step_key_number(other.bytes) &&
               hvd_step_key_number(one.bytes) != begin,
           "a job has a number that is not a part of its secret");
}

int main(void)
{
    test_number();
    const struct secret published = {{1, 2, 3}};
    const struct secret mixed = mix(SERVER, "SLURM_HVD_KEY=" KEY);

    tap_ok(!is_same(mixed, published),
           "a reader of what rank 0 published does not have the secret");
    tap_ok(is_same(mixed, mix(SERVER, "SLURM_HVD_KEY=" KEY)),
           "ranks of the step have the secret");
    tap_ok(!is_same(mixed, mix(SERVER, "SLURM_HVD_KEY=" OTHER)),
           "ranks of another step do not");
    tap_ok(is_same(published, mix(SERVER, NULL)),
           "a step without a key keeps what was published");
    tap_ok(is_same(published, mix("PMIX_NAMESPACE=prterun-n1-7@1", "SLURM_HVD_KEY=" KEY)),
           "ranks that mpirun started inside a step keep it, too");
    tap_ok(is_same(published, mix(SERVER, "SLURM_HVD_KEY=")) &&
               is_same(published, mix(SERVER, "SLURM_HVD_KEY=" KEY "0")),
           "a text of another length is not a key");
    tap_ok(!is_same(published, mix_service("HVD_RENDEZVOUS=n1:1:" KEY)) &&
               !is_same(mix_service("HVD_RENDEZVOUS=n1:1:" KEY),
                        mix_service("HVD_RENDEZVOUS=n1:1:" OTHER)),
           "without PMIx the secret depends on the key of the rendezvous service");
    tap_ok(is_same(mix_service("HVD_RENDEZVOUS=n1:1:" KEY),
                   mix_service("HVD_RENDEZVOUS=10.0.0.1:1:" KEY)),
           "the secret does not depend on the address of the service");
    tap_ok(is_same(published, mix_service("HVD_RENDEZVOUS=")), "no service, no key");
    test_users(published);
    return tap_done();
}
