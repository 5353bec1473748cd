/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticates and encrypts fragments. */
#include "collectives/transport/net/net_seal.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

struct hvd_net_cipher {
    crypto_aead_aes256gcm_state aes; /* aligned to 16 bytes, as memory from malloc is */
    unsigned char key[HVD_SEAL_KEY_BYTES];
};

static_assert(_Alignof(struct hvd_net_cipher) <= _Alignof(max_align_t),
              "malloc aligns it");
static_assert(HVD_SEAL_KEY_BYTES == crypto_aead_aes256gcm_KEYBYTES &&
                  HVD_SEAL_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
              "a key is a key");
static_assert(HVD_SEAL_TAG_BYTES == crypto_aead_aes256gcm_ABYTES &&
                  HVD_SEAL_TAG_BYTES == crypto_aead_xchacha20poly1305_ietf_ABYTES,
              "a tag is a tag");

bool hvd_net_seal_has_aes(void)
{
    return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() != 0;
}

int hvd_net_seal_init(struct hvd_net_seal *seal, enum hvd_net_protection protection,
                      const struct hvd_handshake_keys *keys)
{
    *seal = (struct hvd_net_seal){.protection = protection};
    memcpy(seal->tags.key, keys->child_seal, sizeof(seal->tags.key));
    if (protection < HVD_NET_ENCRYPT_AES) {
        return 0;
    }
    seal->cipher = malloc(sizeof(*seal->cipher));
    if (seal->cipher == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(seal->cipher->key, keys->child_cipher, sizeof(seal->cipher->key));
    if (protection == HVD_NET_ENCRYPT_AES) {
        crypto_aead_aes256gcm_beforenm(&seal->cipher->aes, seal->cipher->key);
    }
    return 0;
}

void hvd_net_seal_finish(struct hvd_net_seal *seal)
{
    if (seal->cipher != NULL) {
        sodium_memzero(seal->cipher, sizeof(*seal->cipher));
        free(seal->cipher);
    }
    sodium_memzero(seal, sizeof(*seal));
}

/* A nonce is never used twice with one key, because each connection and direction has its
 * own key. */
struct nonce {
    unsigned char bytes[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
};

static struct nonce nonce_of(uint64_t number)
{
    struct nonce nonce = {{0}};

    static_assert(sizeof(nonce) >= crypto_aead_aes256gcm_NPUBBYTES, "for both ciphers");
    memcpy(nonce.bytes, &number, sizeof(number));
    return nonce;
}

void hvd_net_seal_close(struct hvd_net_seal *seal, const struct hvd_net_sealed *fragment,
                        const void *data, size_t bytes, void *out)
{
    const size_t covered =
        seal->protection == HVD_NET_PROTECT_MESSAGES ? bytes : fragment->covered;
    const struct nonce nonce = nonce_of(seal->tags.number);

    switch (seal->protection) {
    case HVD_NET_PROTECT_OBJECTS:
    case HVD_NET_PROTECT_MESSAGES:
        hvd_seal_make(&seal->tags, fragment->front, fragment->front_bytes, data, covered,
                      fragment->tag);
        break;
    case HVD_NET_ENCRYPT_AES:
        crypto_aead_aes256gcm_encrypt_detached_afternm(
            out, fragment->tag, NULL, data, bytes, fragment->front, fragment->front_bytes,
            NULL, nonce.bytes, &seal->cipher->aes);
        break;
    case HVD_NET_ENCRYPT_CHACHA:
        crypto_aead_xchacha20poly1305_ietf_encrypt_detached(
            out, fragment->tag, NULL, data, bytes, fragment->front, fragment->front_bytes,
            NULL, nonce.bytes, seal->cipher->key);
        break;
    }
    seal->tags.number++;
}

bool hvd_net_seal_open(struct hvd_net_seal *seal, const struct hvd_net_sealed *fragment,
                       void *data, size_t bytes)
{
    const size_t covered =
        seal->protection == HVD_NET_PROTECT_MESSAGES ? bytes : fragment->covered;
    const struct nonce nonce = nonce_of(seal->tags.number);
    bool is_right = false;

    switch (seal->protection) {
    case HVD_NET_PROTECT_OBJECTS:
    case HVD_NET_PROTECT_MESSAGES:
        is_right = hvd_seal_is_right(&seal->tags, fragment->front, fragment->front_bytes,
                                     data, covered, fragment->tag);
        break;
    case HVD_NET_ENCRYPT_AES:
        is_right = crypto_aead_aes256gcm_decrypt_detached_afternm(
                       data, NULL, data, bytes, fragment->tag, fragment->front,
                       fragment->front_bytes, nonce.bytes, &seal->cipher->aes) == 0;
        break;
    case HVD_NET_ENCRYPT_CHACHA:
        is_right = crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
                       data, NULL, data, bytes, fragment->tag, fragment->front,
                       fragment->front_bytes, nonce.bytes, seal->cipher->key) == 0;
        break;
    }
    seal->tags.number++;
    return is_right;
}
