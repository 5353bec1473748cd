/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on the wire: the length of the sealed bytes, then them. Sealed are type and data. */
#include "pmix_boot/elastic/channel.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define SEAL_BYTES crypto_secretstream_xchacha20poly1305_ABYTES

/* With another protocol comes another context: then the two sides' keys differ. */
static const char context[crypto_kdf_CONTEXTBYTES + 1] = "hvdelas1";

/* What a stranger can make us store, and what cards of all ranks can need. */
static const size_t most_before = 256;
static const size_t most_open = (size_t)1 << 28;

static const size_t read_at_once = 65536;

struct bytes {
    unsigned char *data;
    size_t begin; /* taken up to here */
    size_t end;
    size_t capacity;
};

/* Before the data of a message, so that they are aligned. */
struct plain_head {
    uint32_t type;
    uint32_t zero;
};

struct hvd_channel {
    int fd;
    bool has_peer; /* the other's header is here */
    bool is_open;
    bool is_closed;
    unsigned char own[HEADER_BYTES];
    unsigned char peer[HEADER_BYTES];
    unsigned char pull_key[HVD_CHANNEL_KEY_BYTES];
    crypto_secretstream_xchacha20poly1305_state push;
    crypto_secretstream_xchacha20poly1305_state pull;
    struct bytes in;
    struct bytes out;
    unsigned char *plain; /* of the message that was taken last */
};

static int make_room(struct bytes *bytes, size_t more)
{
    size_t held = bytes->end - bytes->begin;
    size_t capacity = bytes->capacity > 0 ? bytes->capacity : 4096;
    unsigned char *grown;

    if (held > 0 && bytes->begin > 0) {
        memmove(bytes->data, bytes->data + bytes->begin, held);
    }
    bytes->begin = 0;
    bytes->end = held;
    while (capacity < held + more) {
        capacity *= 2;
    }
    if (capacity == bytes->capacity) {
        return 0;
    }
    grown = realloc(bytes->data, capacity);
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    bytes->data = grown;
    bytes->capacity = capacity;
    return 0;
}

static int append(struct bytes *bytes, const void *data, size_t count)
{
    if (make_room(bytes, count) < 0) {
        return HVD_ERR_NOMEM;
    }
    memcpy(bytes->data + bytes->end, data, count);
    bytes->end += count;
    return 0;
}

int hvd_channel_create(int fd, enum hvd_channel_side side,
                       const unsigned char key[HVD_CHANNEL_KEY_BYTES],
                       struct hvd_channel **out)
{
    unsigned char push_key[HVD_CHANNEL_KEY_BYTES];
    uint64_t own_side = side == HVD_CHANNEL_RANK ? 1 : 2;
    struct hvd_channel *channel = calloc(1, sizeof(*channel));

    if (channel == NULL || sodium_init() < 0) {
        free(channel);
        return channel == NULL ? HVD_ERR_NOMEM : HVD_ERR_SYS;
    }
    channel->fd = fd;
    crypto_kdf_derive_from_key(push_key, sizeof(push_key), own_side, context, key);
    crypto_kdf_derive_from_key(channel->pull_key, sizeof(channel->pull_key), 3 - own_side,
                               context, key);
    crypto_secretstream_xchacha20poly1305_init_push(&channel->push, channel->own,
                                                    push_key);
    sodium_memzero(push_key, sizeof(push_key));
    if (append(&channel->out, channel->own, HEADER_BYTES) < 0) {
        free(channel);
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
    close(channel->fd);
    free(channel->in.data);
    free(channel->out.data);
    free(channel->plain);
    sodium_memzero(channel, sizeof(*channel));
    free(channel);
}

int hvd_channel_fd(const struct hvd_channel *channel)
{
    return channel->fd;
}

bool hvd_channel_is_open(const struct hvd_channel *channel)
{
    return channel->is_open;
}

bool hvd_channel_is_pending(const struct hvd_channel *channel)
{
    return channel->out.end > channel->out.begin;
}

/* --- out --- */

static int flush(struct hvd_channel *channel)
{
    while (hvd_channel_is_pending(channel)) {
        ssize_t sent = send(channel->fd, channel->out.data + channel->out.begin,
                            channel->out.end - channel->out.begin, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN ? 0 : HVD_ERR_NET;
        }
        channel->out.begin += (size_t)sent;
    }
    return 0;
}

static int seal(struct hvd_channel *channel, uint32_t type, const void *data,
                size_t bytes)
{
    struct plain_head head = {.type = type};
    size_t plain_bytes = sizeof(head) + bytes;
    uint32_t length = (uint32_t)(plain_bytes + SEAL_BYTES);
    unsigned char *plain;

    if (plain_bytes + SEAL_BYTES > most_open) {
        return HVD_ERR_NOMEM;
    }
    plain = malloc(plain_bytes);
    if (plain == NULL || append(&channel->out, &length, sizeof(length)) < 0 ||
        make_room(&channel->out, length) < 0) {
        free(plain);
        return HVD_ERR_NOMEM;
    }
    memcpy(plain, &head, sizeof(head));
    if (bytes > 0) {
        memcpy(plain + sizeof(head), data, bytes);
    }
    crypto_secretstream_xchacha20poly1305_push(&channel->push,
                                               channel->out.data + channel->out.end, NULL,
                                               plain, plain_bytes, NULL, 0, 0);
    channel->out.end += length;
    free(plain);
    return 0;
}

int hvd_channel_send(struct hvd_channel *channel, uint32_t type, const void *data,
                     size_t bytes)
{
    int status = channel->is_open ? seal(channel, type, data, bytes) : HVD_ERR_STATE;

    if (status == 0 && flush(channel) < 0) {
        channel->is_closed = true; /* whoever reads will find out */
    }
    return status;
}

/* --- in --- */

/* The other side's stream begins: says that its header has come. */
static int take_header(struct hvd_channel *channel)
{
    if (channel->in.end - channel->in.begin < HEADER_BYTES) {
        return HVD_INPROGRESS;
    }
    memcpy(channel->peer, channel->in.data + channel->in.begin, HEADER_BYTES);
    channel->in.begin += HEADER_BYTES;
    channel->has_peer = true;
    if (crypto_secretstream_xchacha20poly1305_init_pull(&channel->pull, channel->peer,
                                                        channel->pull_key) != 0) {
        return HVD_ERR_NET;
    }
    return seal(channel, 0, channel->peer, HEADER_BYTES);
}

/* Opens the next frame into channel->plain; *bytes is the plain size with its head. */
static int take_frame(struct hvd_channel *channel, size_t *bytes)
{
    size_t held = channel->in.end - channel->in.begin;
    const unsigned char *data = channel->in.data + channel->in.begin;
    unsigned long long opened;
    uint32_t length;

    if (held < sizeof(length)) {
        return HVD_INPROGRESS;
    }
    memcpy(&length, data, sizeof(length));
    if (length < sizeof(struct plain_head) + SEAL_BYTES ||
        length > (channel->is_open ? most_open : most_before)) {
        return HVD_ERR_NET;
    }
    if (held < sizeof(length) + length) {
        return HVD_INPROGRESS;
    }
    free(channel->plain);
    channel->plain = malloc(length - SEAL_BYTES);
    if (channel->plain == NULL || crypto_secretstream_xchacha20poly1305_pull(
                                      &channel->pull, channel->plain, &opened, NULL,
                                      data + sizeof(length), length, NULL, 0) != 0) {
        return HVD_ERR_NET;
    }
    channel->in.begin += sizeof(length) + length;
    *bytes = (size_t)opened;
    return 0;
}

/* The first frame: our own header must come back. */
static int take_proof(struct hvd_channel *channel)
{
    size_t bytes;
    int status = take_frame(channel, &bytes);

    if (status != 0) {
        return status;
    }
    if (bytes != sizeof(struct plain_head) + HEADER_BYTES ||
        sodium_memcmp(channel->plain + sizeof(struct plain_head), channel->own,
                      HEADER_BYTES) != 0) {
        return HVD_ERR_NET;
    }
    channel->is_open = true;
    return 0;
}

static int greet(struct hvd_channel *channel)
{
    int status = channel->has_peer ? 0 : take_header(channel);

    if (status == 0 && !channel->is_open) {
        status = take_proof(channel);
    }
    return status;
}

/* Returns 0, or HVD_ERR_NET when no more will come. */
static int read_some(struct hvd_channel *channel)
{
    for (;;) {
        ssize_t got;

        if (make_room(&channel->in, read_at_once) < 0) {
            return HVD_ERR_NET;
        }
        got = recv(channel->fd, channel->in.data + channel->in.end, read_at_once, 0);
        if (got > 0) {
            channel->in.end += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return HVD_ERR_NET;
        } else if (errno == EAGAIN) {
            return 0;
        }
        if (!channel->is_open && channel->in.end - channel->in.begin > 2 * most_before) {
            return HVD_ERR_NET;
        }
    }
}

int hvd_channel_progress(struct hvd_channel *channel)
{
    int greeting;

    channel->is_closed = channel->is_closed || read_some(channel) < 0;
    greeting = greet(channel);
    if (greeting < 0 || flush(channel) < 0) {
        channel->is_closed = true;
    }
    return channel->is_closed ? HVD_ERR_NET : 0;
}

int hvd_channel_next(struct hvd_channel *channel, struct hvd_channel_message *message)
{
    struct plain_head head;
    size_t bytes = 0;
    int status = channel->is_open ? take_frame(channel, &bytes) : HVD_INPROGRESS;

    if (status == HVD_INPROGRESS) {
        return channel->is_closed ? HVD_ERR_NET : HVD_INPROGRESS;
    }
    if (status < 0) {
        channel->is_closed = true;
        return status;
    }
    memcpy(&head, channel->plain, sizeof(head));
    *message = (struct hvd_channel_message){
        .type = head.type,
        .data = channel->plain + sizeof(head),
        .bytes = bytes - sizeof(head),
    };
    return 0;
}
