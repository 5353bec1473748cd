/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/step_key.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "gpu_binding/base/env.h"

enum {
    SHORTEST_SECRET = 16 /* characters */
};

static const char *find_variable(const char *const *environment, const char *name)
{
    const size_t length = strlen(name);

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

/* Mixes a key into the secret. Does nothing if the text is too short or too long to be a
 * key. */
static void mix_key(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES], const char *key)
{
    const size_t bytes = key != NULL ? strlen(key) : 0;
    unsigned char mixed[HVD_HANDSHAKE_SECRET_BYTES];

    if (bytes < crypto_generichash_KEYBYTES_MIN ||
        bytes > crypto_generichash_KEYBYTES_MAX || sodium_init() < 0) {
        return;
    }
    crypto_generichash(mixed, sizeof(mixed), secret, HVD_HANDSHAKE_SECRET_BYTES,
                       (const unsigned char *)key, bytes);
    memcpy(secret, mixed, sizeof(mixed));
    sodium_memzero(mixed, sizeof(mixed));
}

void hvd_step_key_mix(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                      const char *const *environment)
{
    static const char slurms[] = "slurm.pmix.";
    const char *server = find_variable(environment, HVD_ENV_PMIX_NAMESPACE);

    if (server != NULL && strncmp(server, slurms, strlen(slurms)) == 0) {
        mix_key(secret, find_variable(environment, HVD_ENV_STEP_KEY));
    }
}

int hvd_step_key_mix_users(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                           const char *const *environment, struct hvd_error *err)
{
    const char *text = find_variable(environment, HVD_ENV_SECRET);
    const size_t bytes = text != NULL ? strlen(text) : 0;
    unsigned char key[crypto_generichash_BYTES];
    char words[2 * sizeof(key) + 1];

    if (bytes == 0) {
        return 0;
    }
    if (bytes < SHORTEST_SECRET) {
        return hvd_fail(err, HVD_ERR_ARG,
                        HVD_ENV_SECRET " has %zu characters, but must have at least %d: "
                                       "export " HVD_ENV_SECRET
                                       "=$(openssl rand -hex 32)",
                        bytes, SHORTEST_SECRET);
    }
    crypto_generichash(key, sizeof(key), (const unsigned char *)text, bytes, NULL, 0);
    sodium_bin2hex(words, sizeof(words), key, sizeof(key));
    mix_key(secret, words);
    sodium_memzero(key, sizeof(key));
    sodium_memzero(words, sizeof(words));
    return 0;
}

void hvd_step_key_mix_service(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                              const char *const *environment)
{
    const char *address = find_variable(environment, HVD_ENV_RENDEZVOUS);
    const char *colon = address != NULL ? strrchr(address, ':') : NULL;

    mix_key(secret, colon != NULL ? colon + 1 : NULL);
}

uint64_t hvd_step_key_number(const unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES])
{
    static const unsigned char purpose[crypto_generichash_KEYBYTES] = "number of a job";
    unsigned char hash[crypto_generichash_BYTES];
    uint64_t number;

    crypto_generichash(hash, sizeof(hash), secret, HVD_HANDSHAKE_SECRET_BYTES, purpose,
                       sizeof(purpose));
    memcpy(&number, hash, sizeof(number));
    return number;
}
