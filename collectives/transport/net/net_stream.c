/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives fragments over a TCP connection. */
#include "collectives/transport/net/net_stream.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "gpu_binding/base/hvd_status.h"

enum {
    MAGIC = 0x32766468, /* change it whenever struct front changes */
    MOST_AT_ONCE = 16, /* fragments per writev */
    MOST_READS = 8, /* reads of one connection before the others get their turn */
};

/* Precedes the bytes of a fragment. */
struct front {
    uint16_t bytes;
    uint16_t covered; /* how many of the bytes the tag covers */
    uint32_t magic;
    struct hvd_net_header header;
    /* tag of all members above and the covered bytes: see net_seal.h */
    unsigned char tag[HVD_SEAL_TAG_BYTES];
};

static_assert(HVD_NET_FRAGMENT_BYTES <= UINT16_MAX, "a length fits");
static_assert(offsetof(struct front, tag) <= HVD_SEAL_MOST_FRONT_BYTES,
              "a tag covers the front");
static_assert(sizeof(((struct hvd_net_fragment *)NULL)->tag) == HVD_SEAL_TAG_BYTES,
              "a fragment has room for its tag");

enum {
    /* room for two fragments: the second may begin to arrive while the first is taken */
    BUFFER_BYTES = 2 * (HVD_NET_FRAGMENT_BYTES + (int)sizeof(struct front)),
};

struct hvd_net_buffer {
    struct hvd_net_buffer *next;
    size_t begin; /* unread bytes are [begin, end) */
    size_t end;
    char data[BUFFER_BYTES];
};

/* --- outgoing --- */

static struct hvd_net_fragment *next_of(const struct hvd_net_fragment *fragment)
{
    return fragment->transport;
}

static size_t length_of(const struct hvd_net_fragment *fragment)
{
    return sizeof(struct front) + fragment->bytes;
}

int hvd_net_outlet_protect(struct hvd_net_outlet *outlet,
                           enum hvd_net_protection protection,
                           const struct hvd_handshake_keys *keys)
{
    int status = hvd_net_seal_init(&outlet->seal, protection, keys);

    if (status == 0 && outlet->seal.cipher != NULL) {
        outlet->encrypted = malloc(sizeof(struct front) + HVD_NET_FRAGMENT_BYTES);
        status = outlet->encrypted == NULL ? HVD_ERR_NOMEM : 0;
    }
    return status;
}

void hvd_net_outlet_finish(struct hvd_net_outlet *outlet)
{
    hvd_net_seal_finish(&outlet->seal);
    free(outlet->encrypted);
    outlet->encrypted = NULL;
}

/* Fills in the header of a fragment. Makes the tag at the first call only: a fragment
 * that a full socket delays comes here several times. */
static void make_front(struct hvd_net_outlet *outlet, struct hvd_net_fragment *fragment,
                       struct front *front)
{
    *front = (struct front){.bytes = (uint16_t)fragment->bytes,
                            .covered = (uint16_t)fragment->covered,
                            .magic = MAGIC,
                            .header = fragment->header};
    if (!fragment->is_sealed) {
        const struct hvd_net_sealed sealed = {front, offsetof(struct front, tag),
                                              fragment->covered, fragment->tag};

        hvd_net_seal_close(&outlet->seal, &sealed, fragment->data, fragment->bytes,
                           outlet->encrypted != NULL ? outlet->encrypted + sizeof(*front)
                                                     : NULL);
        fragment->is_sealed = true;
    }
    memcpy(front->tag, fragment->tag, sizeof(front->tag));
}

/* Fills in two iovecs for a fragment, leaving out its first `written` bytes. */
static void describe_fragment(struct hvd_net_outlet *outlet,
                              struct hvd_net_fragment *fragment, size_t written,
                              struct front *front, struct iovec *out)
{
    const size_t skipped = written < sizeof(*front) ? written : sizeof(*front);
    const size_t done = written - skipped;
    const char *data = fragment->data;

    make_front(outlet, fragment, front);
    if (outlet->encrypted != NULL) {
        data = outlet->encrypted + sizeof(*front);
    }
    out[0] = (struct iovec){(char *)front + skipped, sizeof(*front) - skipped};
    out[1] = (struct iovec){(char *)(uintptr_t)data + done, fragment->bytes - done};
}

/* Writes consecutive fragments; encrypted ones one at a time, because there is only one
 * buffer for them. Returns how many bytes the socket took, or -1 and sets errno. */
static ssize_t write_some(struct hvd_net_outlet *outlet, struct hvd_net_fragment *first,
                          size_t written)
{
    struct front fronts[MOST_AT_ONCE];
    struct iovec iov[2 * MOST_AT_ONCE];
    struct msghdr message = {.msg_iov = iov};
    const int most = outlet->encrypted != NULL ? 1 : MOST_AT_ONCE;
    ssize_t bytes;

    for (int i = 0; i < most && first != NULL; i++, first = next_of(first)) {
        describe_fragment(outlet, first, written, &fronts[i], &iov[message.msg_iovlen]);
        message.msg_iovlen += 2;
        written = 0;
    }
    do {
        bytes = sendmsg(outlet->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (bytes < 0 && errno == EINTR);
    return bytes < 0 && errno == EAGAIN ? 0 : bytes;
}

int hvd_net_outlet_send(struct hvd_net_outlet *outlet, struct hvd_net_fragment *fragment)
{
    ssize_t bytes = 0;

    fragment->transport = NULL;
    fragment->is_sealed = false;
    if (outlet->fd >= 0 && outlet->first == NULL) {
        bytes = write_some(outlet, fragment, 0);
        if (bytes < 0) {
            return HVD_ERR_PEER;
        }
        if ((size_t)bytes == length_of(fragment)) {
            return 0;
        }
        outlet->written = (size_t)bytes;
    }
    if (outlet->first == NULL) {
        outlet->first = fragment;
    } else {
        outlet->last->transport = fragment;
    }
    outlet->last = fragment;
    return HVD_INPROGRESS;
}

static struct hvd_net_fragment *take_first(struct hvd_net_outlet *outlet)
{
    struct hvd_net_fragment *fragment = outlet->first;

    outlet->first = next_of(fragment);
    outlet->written = 0;
    return fragment;
}

int hvd_net_outlet_flush(struct hvd_net_outlet *outlet, hvd_net_sent *sent, void *context)
{
    int count = 0;

    while (outlet->first != NULL) {
        ssize_t bytes = write_some(outlet, outlet->first, outlet->written);

        if (bytes <= 0) {
            return bytes == 0 ? count : HVD_ERR_PEER;
        }
        outlet->written += (size_t)bytes;
        while (outlet->first != NULL && outlet->written >= length_of(outlet->first)) {
            const size_t rest = outlet->written - length_of(outlet->first);

            sent(context, take_first(outlet), 0);
            outlet->written = rest;
            count++;
        }
    }
    return count;
}

void hvd_net_outlet_drop(struct hvd_net_outlet *outlet, int status, hvd_net_sent *sent,
                         void *context)
{
    while (outlet->first != NULL) {
        sent(context, take_first(outlet), status);
    }
}

/* --- incoming --- */

static struct hvd_net_buffer *get_buffer(struct hvd_net_buffers *buffers)
{
    struct hvd_net_buffer *buffer = buffers->unused;

    if (buffer != NULL) {
        buffers->unused = buffer->next;
    } else {
        buffer = malloc(sizeof(*buffer));
    }
    if (buffer != NULL) {
        buffer->begin = 0;
        buffer->end = 0;
    }
    return buffer;
}

static void give_buffer_back(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers)
{
    if (inlet->buffer != NULL) {
        inlet->buffer->next = buffers->unused;
        buffers->unused = inlet->buffer;
        inlet->buffer = NULL;
    }
}

void hvd_net_inlet_finish(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers)
{
    give_buffer_back(inlet, buffers);
    hvd_net_seal_finish(&inlet->seal);
}

void hvd_net_buffers_finish(struct hvd_net_buffers *buffers)
{
    while (buffers->unused != NULL) {
        struct hvd_net_buffer *buffer = buffers->unused;

        buffers->unused = buffer->next;
        free(buffer);
    }
}

/* Passes on all complete fragments in the buffer. Returns their number, or a failure. */
static int hand_over(struct hvd_net_inlet *inlet, hvd_net_arrived *arrived, void *context)
{
    struct hvd_net_buffer *buffer = inlet->buffer;
    int count = 0;

    while (buffer->end - buffer->begin >= sizeof(struct front)) {
        char *at = buffer->data + buffer->begin;
        struct front front;
        struct hvd_net_sealed sealed = {&front, offsetof(struct front, tag), 0,
                                        front.tag};
        int status;

        memcpy(&front, at, sizeof(front));
        sealed.covered = front.covered;
        if (front.magic != MAGIC || front.bytes > HVD_NET_FRAGMENT_BYTES ||
            front.covered > front.bytes) {
            return HVD_ERR_NET;
        }
        if (buffer->end - buffer->begin < sizeof(front) + front.bytes) {
            break;
        }
        if (!hvd_net_seal_open(&inlet->seal, &sealed, at + sizeof(front), front.bytes)) {
            return HVD_ERR_NET;
        }
        status = arrived(context, &front.header, at + sizeof(front), front.bytes);
        if (status < 0) {
            return status;
        }
        buffer->begin += sizeof(front) + front.bytes;
        count++;
    }
    return count;
}

/* Makes room behind an incomplete fragment for its remaining bytes. */
static void make_room(struct hvd_net_buffer *buffer)
{
    if (buffer->begin == buffer->end || buffer->begin > BUFFER_BYTES / 2) {
        memmove(buffer->data, buffer->data + buffer->begin, buffer->end - buffer->begin);
        buffer->end -= buffer->begin;
        buffer->begin = 0;
    }
}

/* Reads once. Sets *is_all if the socket is empty. Returns the same as
 * hvd_net_inlet_read. */
static int read_once(struct hvd_net_inlet *inlet, hvd_net_arrived *arrived, void *context,
                     bool *is_all)
{
    struct hvd_net_buffer *buffer = inlet->buffer;
    ssize_t bytes;
    size_t room;

    make_room(buffer);
    room = BUFFER_BYTES - buffer->end;
    do {
        bytes = recv(inlet->fd, buffer->data + buffer->end, room, MSG_DONTWAIT);
    } while (bytes < 0 && errno == EINTR);
    *is_all = bytes < (ssize_t)room;
    if (bytes < 0) {
        return errno == EAGAIN ? 0 : HVD_ERR_PEER;
    }
    if (bytes == 0) {
        errno = buffer->begin == buffer->end ? 0 : ECONNRESET;
        return HVD_ERR_PEER;
    }
    buffer->end += (size_t)bytes;
    return hand_over(inlet, arrived, context);
}

int hvd_net_inlet_read(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers,
                       hvd_net_arrived *arrived, void *context)
{
    bool is_all = false;
    int count = 0;

    if (inlet->buffer == NULL && (inlet->buffer = get_buffer(buffers)) == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < MOST_READS && !is_all; i++) {
        int status = read_once(inlet, arrived, context, &is_all);

        if (status < 0) {
            return status;
        }
        count += status;
    }
    if (inlet->buffer->begin == inlet->buffer->end) {
        give_buffer_back(inlet, buffers);
    }
    return count;
}
