/* SPDX-License-Identifier: Apache-2.0 */
/* Each message is sent in one frame of the link; its type and data are encrypted and
 * authenticated together. */
#include "pmix_boot/rendezvous/channel.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/sock/link.h"

#define HEADER_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define SEAL_BYTES crypto_secretstream_xchacha20poly1305_ABYTES

/* A new protocol gets a new context, so that the keys of different protocols differ. */
static const char context[crypto_kdf_CONTEXTBYTES + 1] = "hvdelas5";

/* The longest frame that is accepted before the peer has proved itself, and afterwards.
 * The longest messages contain the cards of all ranks. */
static const size_t most_before = 256;
static const size_t most_open = (size_t)1 << 28;

enum frame {
    FRAME_HEADER = 1,
    FRAME_SEALED,
};

/* Precedes the data of a message. Its 8 bytes keep the data aligned. */
struct plain_head {
    uint32_t type;
    uint32_t zero;
};

struct hvd_channel {
    struct hvd_link *link;
    enum hvd_channel_side side;
    bool has_peer; /* the other side's header has arrived */
    bool has_proof; /* the other side has proved that it has the key */
    bool is_open;
    bool is_closed;
    /* why the channel was closed: HVD_ERR_PEER, HVD_ERR_NET; 0 while it is open */
    int end;
    bool has_sealed; /* `sealed` has arrived and has yet to be taken */
    struct hvd_link_message sealed;
    unsigned char own[HEADER_BYTES];
    unsigned char peer[HEADER_BYTES];
    unsigned char pull_key[HVD_CHANNEL_KEY_BYTES];
    crypto_secretstream_xchacha20poly1305_state push;
    crypto_secretstream_xchacha20poly1305_state pull;
    unsigned char *plain; /* the message that was taken last */
};

int hvd_channel_create(int fd, enum hvd_channel_side side,
                       const unsigned char key[HVD_CHANNEL_KEY_BYTES],
                       struct hvd_channel **out)
{
    unsigned char push_key[HVD_CHANNEL_KEY_BYTES];
    uint64_t own_side = side == HVD_CHANNEL_RANK ? 1 : 2;
    struct hvd_channel *channel = calloc(1, sizeof(*channel));
    struct hvd_link *link = NULL;

    if (hvd_link_create(fd, most_before, &link) < 0 || channel == NULL) {
        hvd_link_destroy(link);
        free(channel);
        return HVD_ERR_NOMEM;
    }
    channel->link = link;
    channel->side = side;
    if (sodium_init() < 0) {
        hvd_channel_destroy(channel);
        return HVD_ERR_SYS;
    }
    crypto_kdf_derive_from_key(push_key, sizeof(push_key), own_side, context, key);
    crypto_kdf_derive_from_key(channel->pull_key, sizeof(channel->pull_key), 3 - own_side,
                               context, key);
    crypto_secretstream_xchacha20poly1305_init_push(&channel->push, channel->own,
                                                    push_key);
    sodium_memzero(push_key, sizeof(push_key));
    if (hvd_link_send(link, FRAME_HEADER, channel->own, HEADER_BYTES, -1) < 0) {
        hvd_channel_destroy(channel);
        return HVD_ERR_NOMEM;
    }
    *out = channel;
    return 0;
}

void hvd_channel_destroy(struct hvd_channel *channel)
{
    if (channel == NULL) {
        return;
    }
    hvd_link_destroy(channel->link);
    free(channel->plain);
    sodium_memzero(channel, sizeof(*channel));
    free(channel);
}

int hvd_channel_fd(const struct hvd_channel *channel)
{
    return hvd_link_fd(channel->link);
}

bool hvd_channel_is_open(const struct hvd_channel *channel)
{
    return channel->is_open;
}

bool hvd_channel_has_begun(const struct hvd_channel *channel)
{
    return channel->has_peer;
}

bool hvd_channel_is_pending(const struct hvd_channel *channel)
{
    return hvd_link_is_pending(channel->link);
}

bool hvd_channel_was_reset(const struct hvd_channel *channel)
{
    const int error = hvd_link_errno(channel->link);

    return error == ECONNRESET || error == EPIPE;
}

/* --- outgoing --- */

static int seal(struct hvd_channel *channel, uint32_t type, const void *data,
                size_t bytes)
{
    struct plain_head head = {.type = type};
    size_t plain_bytes = sizeof(head) + bytes;
    size_t sealed_bytes = plain_bytes + SEAL_BYTES;
    unsigned char *sealed;
    unsigned char *plain;
    int status;

    if (bytes > most_open || sealed_bytes > most_open) {
        return HVD_ERR_NOMEM;
    }
    sealed = malloc(sealed_bytes + plain_bytes);
    if (sealed == NULL) {
        return HVD_ERR_NOMEM;
    }
    plain = sealed + sealed_bytes;
    memcpy(plain, &head, sizeof(head));
    if (bytes > 0) {
        memcpy(plain + sizeof(head), data, bytes);
    }
    crypto_secretstream_xchacha20poly1305_push(&channel->push, sealed, NULL, plain,
                                               plain_bytes, NULL, 0, 0);
    status = hvd_link_send(channel->link, FRAME_SEALED, sealed, sealed_bytes, -1);
    free(sealed);
    return status;
}

int hvd_channel_send(struct hvd_channel *channel, uint32_t type, const void *data,
                     size_t bytes)
{
    return channel->is_open ? seal(channel, type, data, bytes) : HVD_ERR_STATE;
}

/* --- incoming --- */

static int next_frame(struct hvd_channel *channel, enum frame type,
                      struct hvd_link_message *frame)
{
    int status = hvd_link_next(channel->link, frame);

    if (status != 0) {
        return status;
    }
    hvd_fork_close_now(frame->fd);
    return frame->type == type && !frame->carries_fd ? 0 : HVD_ERR_NET;
}

/* Starts the other side's stream and confirms its header. */
static int take_header(struct hvd_channel *channel)
{
    struct hvd_link_message frame;
    int status = next_frame(channel, FRAME_HEADER, &frame);

    if (status != 0) {
        return status;
    }
    if (frame.bytes != HEADER_BYTES) {
        return HVD_ERR_NET;
    }
    memcpy(channel->peer, frame.payload, HEADER_BYTES);
    channel->has_peer = true;
    if (crypto_secretstream_xchacha20poly1305_init_pull(&channel->pull, channel->peer,
                                                        channel->pull_key) != 0) {
        return HVD_ERR_NET;
    }
    return seal(channel, 0, channel->peer, HEADER_BYTES);
}

/* Opens a frame into channel->plain; *bytes is the size of the plain text with its
 * head. */
static int unseal(struct hvd_channel *channel, const struct hvd_link_message *frame,
                  size_t *bytes)
{
    unsigned long long opened;

    if (frame->bytes < sizeof(struct plain_head) + SEAL_BYTES) {
        return HVD_ERR_NET;
    }
    free(channel->plain);
    channel->plain = malloc(frame->bytes - SEAL_BYTES);
    if (channel->plain == NULL || crypto_secretstream_xchacha20poly1305_pull(
                                      &channel->pull, channel->plain, &opened, NULL,
                                      frame->payload, frame->bytes, NULL, 0) != 0) {
        return HVD_ERR_NET;
    }
    *bytes = (size_t)opened;
    return 0;
}

/* Takes the next frame of the handshake into channel->plain, as unseal does. */
static int take_sealed(struct hvd_channel *channel, size_t *bytes)
{
    struct hvd_link_message frame;
    int status = next_frame(channel, FRAME_SEALED, &frame);

    return status == 0 ? unseal(channel, &frame, bytes) : status;
}

static void set_open(struct hvd_channel *channel)
{
    channel->is_open = true;
    hvd_link_allow(channel->link, most_open);
}

/* Takes the first sealed frame, which must contain our own header. The service accepts
 * the rank by an empty message. */
static int take_proof(struct hvd_channel *channel)
{
    size_t bytes;
    int status = take_sealed(channel, &bytes);

    if (status != 0) {
        return status;
    }
    if (bytes != sizeof(struct plain_head) + HEADER_BYTES ||
        sodium_memcmp(channel->plain + sizeof(struct plain_head), channel->own,
                      HEADER_BYTES) != 0) {
        return HVD_ERR_NET;
    }
    channel->has_proof = true;
    if (channel->side == HVD_CHANNEL_RANK) {
        return 0;
    }
    set_open(channel);
    return seal(channel, 0, NULL, 0);
}

/* Takes the empty message by which the service accepts this rank. */
static int take_acceptance(struct hvd_channel *channel)
{
    size_t bytes;
    int status = take_sealed(channel, &bytes);

    if (status != 0) {
        return status;
    }
    if (bytes != sizeof(struct plain_head)) {
        return HVD_ERR_NET;
    }
    set_open(channel);
    return 0;
}

/* Handles what has arrived: returns 0, HVD_INPROGRESS if more is needed, or
 * HVD_ERR_NET. */
static int advance_handshake(struct hvd_channel *channel)
{
    int status;

    if (!channel->has_peer) {
        return take_header(channel);
    }
    if (!channel->has_proof) {
        return take_proof(channel);
    }
    if (!channel->is_open) {
        return take_acceptance(channel);
    }
    status = next_frame(channel, FRAME_SEALED, &channel->sealed);
    channel->has_sealed = status == 0;
    return status;
}

int hvd_channel_progress(struct hvd_channel *channel)
{
    int status = 0;

    hvd_link_flush(channel->link);
    while (status == 0 && !channel->has_sealed && !channel->is_closed) {
        status = advance_handshake(channel);
        if (status == HVD_INPROGRESS) {
            status = hvd_link_read(channel->link);
        }
    }
    if (status < 0 && !channel->is_closed) {
        channel->is_closed = true;
        channel->end = status == HVD_ERR_PEER ? HVD_ERR_PEER : HVD_ERR_NET;
    }
    return channel->end;
}

int hvd_channel_next(struct hvd_channel *channel, struct hvd_channel_message *message)
{
    struct plain_head head;
    size_t bytes = 0;
    int status = channel->is_open ? 0 : HVD_INPROGRESS;

    if (status == 0 && !channel->has_sealed) {
        status = next_frame(channel, FRAME_SEALED, &channel->sealed);
    }
    if (status == HVD_INPROGRESS) {
        return channel->is_closed ? HVD_ERR_NET : HVD_INPROGRESS;
    }
    channel->has_sealed = false;
    if (status == 0) {
        status = unseal(channel, &channel->sealed, &bytes);
    }
    if (status < 0) {
        channel->is_closed = true;
        channel->end = HVD_ERR_NET;
        return HVD_ERR_NET;
    }
    memcpy(&head, channel->plain, sizeof(head));
    *message = (struct hvd_channel_message){
        .type = head.type,
        .data = channel->plain + sizeof(head),
        .bytes = bytes - sizeof(head),
    };
    return 0;
}
