/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the fragments of one direction of a TCP connection against an attacker on the
 * network. Each fragment has a number and a tag, so that no fragment can be changed,
 * dropped, repeated or reordered.
 *
 *   protection            the tag covers           message bytes travel
 *   OBJECTS               the header, and bytes    in the clear
 *                         that must be covered
 *   MESSAGES              everything               in the clear
 *   ENCRYPT_AES, _CHACHA  everything               encrypted */
#ifndef HVD_NET_SEAL_H
#define HVD_NET_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/sock/handshake.h"

enum hvd_net_protection {
    HVD_NET_PROTECT_OBJECTS,
    HVD_NET_PROTECT_MESSAGES,
    HVD_NET_ENCRYPT_AES, /* AES-256-GCM; needs AES instructions of the processor */
    HVD_NET_ENCRYPT_CHACHA, /* XChaCha20-Poly1305 */
};

/* Whether this machine has the instructions for HVD_NET_ENCRYPT_AES. */
bool hvd_net_seal_has_aes(void);

struct hvd_net_cipher;

/* The state of one end. Zeroed, it is for tests: protection OBJECTS with a key of
 * zeros. */
struct hvd_net_seal {
    enum hvd_net_protection protection;
    struct hvd_seal tags;
    struct hvd_net_cipher *cipher; /* NULL if nothing is encrypted */
};

/* The parts of a fragment other than its data, in the caller's memory. */
struct hvd_net_sealed {
    const void *front;
    size_t front_bytes; /* at most HVD_SEAL_MOST_FRONT_BYTES */
    /* with OBJECTS: number of data bytes, from the first on, that the tag covers */
    size_t covered;
    unsigned char *tag; /* HVD_SEAL_TAG_BYTES */
};

/* Prepares one end of a connection on which the child of the handshake sends, with the
 * child's keys. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_seal_init(struct hvd_net_seal *seal, enum hvd_net_protection protection,
                      const struct hvd_handshake_keys *keys);
void hvd_net_seal_finish(struct hvd_net_seal *seal);

/* Makes the tag of the next fragment; with a cipher, writes the encrypted bytes to
 * out. */
void hvd_net_seal_close(struct hvd_net_seal *seal, const struct hvd_net_sealed *fragment,
                        const void *data, size_t bytes, void *out);

/* Returns whether this is the next fragment, unchanged; with a cipher, decrypts data in
 * place. */
bool hvd_net_seal_open(struct hvd_net_seal *seal, const struct hvd_net_sealed *fragment,
                       void *data, size_t bytes);

#endif
