/* SPDX-License-Identifier: Apache-2.0 */
/* Framed messages over a non-blocking stream socket, TCP or unix. */
#include "pmix_boot/sock/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "gpu_binding/base/fork_close.h"
#include "gpu_binding/base/hvd_status.h"

/* Initial size of the read buffer, which holds many control messages. */
#define READ_BYTES 16384

struct frame {
    uint32_t bytes;
    uint32_t type;
    uint32_t carries_fd;
    uint32_t zero;
};

/* A queued message that the socket has not accepted as a whole. */
struct parcel {
    struct parcel *next;
    size_t bytes;
    size_t written;
    int fd; /* descriptor to send along; -1: none, or it was sent */
    char data[];
};

struct hvd_link {
    int fd;
    int error; /* errno that ended the connection */
    bool is_broken; /* the connection has ended: nothing more is written */
    size_t max_bytes;
    struct parcel *first;
    struct parcel *last;
    char *buffer;
    size_t capacity;
    size_t begin; /* unread bytes are begin ... end */
    size_t end;
    /* descriptors of messages that were not taken out yet: of one that has arrived in
     * part, and of the one behind it; -1: this process had no room for it */
    int arrived_fds[2];
    int arrived_fd_count;
    size_t tag_bytes; /* size of the tag of each message; 0 until the link is protected */
    struct hvd_seal sent; /* our key, and the number of our next message */
    struct hvd_seal received;
};

static size_t padded_bytes(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static size_t message_bytes(const struct hvd_link *link, const struct frame *frame)
{
    return sizeof(*frame) + padded_bytes(frame->bytes) + link->tag_bytes;
}

int hvd_link_create(int fd, size_t max_bytes, struct hvd_link **out)
{
    struct hvd_link *link = calloc(1, sizeof(*link));
    char *buffer = malloc(READ_BYTES);

    if (link == NULL || buffer == NULL || hvd_fork_close_add(fd) != 0) {
        free(link);
        free(buffer);
        hvd_fork_close_now(fd);
        return HVD_ERR_NOMEM;
    }
    link->fd = fd;
    link->max_bytes = max_bytes;
    link->buffer = buffer;
    link->capacity = READ_BYTES;
    *out = link;
    return 0;
}

/* Takes out the descriptor that arrived first, or -1. */
static int take_fd(struct hvd_link *link)
{
    int fd = -1;

    if (link->arrived_fd_count > 0) {
        fd = link->arrived_fds[0];
        link->arrived_fds[0] = link->arrived_fds[1];
        link->arrived_fd_count--;
    }
    return fd;
}

static void drop_queue(struct hvd_link *link)
{
    while (link->first != NULL) {
        struct parcel *parcel = link->first;

        link->first = parcel->next;
        free(parcel);
    }
    link->last = NULL;
}

void hvd_link_destroy(struct hvd_link *link)
{
    if (link == NULL) {
        return;
    }
    drop_queue(link);
    while (link->arrived_fd_count > 0) {
        hvd_fork_close_now(take_fd(link));
    }
    hvd_fork_close_now(link->fd);
    free(link->buffer);
    free(link);
}

int hvd_link_detach(struct hvd_link *link)
{
    int fd = link->fd;

    assert(link->first == NULL && link->begin == link->end);
    link->fd = -1;
    hvd_link_destroy(link);
    return fd;
}

int hvd_link_fd(const struct hvd_link *link)
{
    return link->fd;
}

void hvd_link_allow(struct hvd_link *link, size_t max_bytes)
{
    link->max_bytes = max_bytes;
}

void hvd_link_protect(struct hvd_link *link,
                      const unsigned char own_key[HVD_SEAL_KEY_BYTES],
                      const unsigned char other_key[HVD_SEAL_KEY_BYTES])
{
    link->tag_bytes = HVD_SEAL_TAG_BYTES;
    link->sent.number = 0;
    link->received.number = 0;
    memcpy(link->sent.key, own_key, HVD_SEAL_KEY_BYTES);
    memcpy(link->received.key, other_key, HVD_SEAL_KEY_BYTES);
}

int hvd_link_errno(const struct hvd_link *link)
{
    return link->error;
}

bool hvd_link_is_pending(const struct hvd_link *link)
{
    return link->first != NULL;
}

/* Writes once. Returns the number of bytes written; 0 if the socket is full or broken. */
static size_t write_some(struct hvd_link *link, struct iovec *iov, int count, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};

    if (fd >= 0) {
        struct cmsghdr *header = &control.align;

        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(int));
    }
    for (;;) {
        ssize_t n = sendmsg(link->fd, &message, MSG_NOSIGNAL);

        if (n >= 0) {
            return (size_t)n;
        }
        /* ETOOMANYREFS: too many descriptors are in flight; readers make room */
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ||
            errno == ETOOMANYREFS) {
            return 0;
        }
        if (errno != EINTR) {
            link->is_broken = true;
            link->error = errno;
            return 0;
        }
    }
}

void hvd_link_flush(struct hvd_link *link)
{
    while (link->first != NULL && !link->is_broken) {
        struct parcel *parcel = link->first;
        struct iovec iov = {parcel->data + parcel->written,
                            parcel->bytes - parcel->written};
        size_t n = write_some(link, &iov, 1, parcel->fd);

        if (n == 0) {
            break;
        }
        parcel->fd = -1;
        parcel->written += n;
        if (parcel->written < parcel->bytes) {
            continue;
        }
        link->first = parcel->next;
        if (link->first == NULL) {
            link->last = NULL;
        }
        free(parcel);
    }
    if (link->is_broken) {
        drop_queue(link);
    }
}

/* Pieces of a message: frame, payload, padding and tag. */
#define PIECES 4

/* Queues the pieces, whose first `skip` bytes were already written. */
static int keep_rest(struct hvd_link *link, const struct iovec *iov, size_t skip, int fd)
{
    size_t total = iov[0].iov_len + iov[1].iov_len + iov[2].iov_len + iov[3].iov_len;
    struct parcel *parcel = malloc(sizeof(*parcel) + total);
    char *to = NULL;

    if (parcel == NULL) {
        return HVD_ERR_NOMEM;
    }
    /* Set the struct first: the data begins in the padding at its end. */
    *parcel = (struct parcel){.bytes = total, .written = skip, .fd = fd};
    to = parcel->data;
    for (int i = 0; i < PIECES; i++) {
        if (iov[i].iov_len > 0) {
            memcpy(to, iov[i].iov_base, iov[i].iov_len);
        }
        to += iov[i].iov_len;
    }
    if (link->last != NULL) {
        link->last->next = parcel;
    } else {
        link->first = parcel;
    }
    link->last = parcel;
    return 0;
}

int hvd_link_send(struct hvd_link *link, uint32_t type, const void *payload, size_t bytes,
                  int fd)
{
    static const char zeros[8];
    struct frame frame = {.bytes = (uint32_t)bytes, .type = type, .carries_fd = fd >= 0};
    unsigned char tag[HVD_SEAL_TAG_BYTES];
    struct iovec iov[PIECES] = {
        {&frame, sizeof(frame)},
        {(void *)(uintptr_t)payload, bytes},
        {(void *)(uintptr_t)zeros, padded_bytes(bytes) - bytes},
        {tag, link->tag_bytes},
    };
    size_t n = 0;
    int status = 0;

    if (bytes > UINT32_MAX - 8) {
        return HVD_ERR_ARG;
    }
    if (link->is_broken) {
        return 0;
    }
    if (link->tag_bytes > 0) {
        hvd_seal_make(&link->sent, &frame, sizeof(frame), payload, bytes, tag);
    }
    if (link->first == NULL) {
        n = write_some(link, iov, PIECES, fd);
    }
    if (!link->is_broken && n < message_bytes(link, &frame)) {
        status = keep_rest(link, iov, n, n > 0 ? -1 : fd);
        /* the peer would take the next message for the rest of this one */
        link->is_broken = status != 0 && n > 0;
    }
    link->sent.number += status == 0 ? 1 : 0;
    return status;
}

/* Returns the size of the message at `begin`; until its frame has arrived, the size of a
 * frame. */
static size_t wanted_bytes(const struct hvd_link *link)
{
    struct frame frame;

    if (link->end - link->begin < sizeof(frame)) {
        return sizeof(frame);
    }
    memcpy(&frame, link->buffer + link->begin, sizeof(frame));
    return frame.bytes > link->max_bytes ? sizeof(frame) : message_bytes(link, &frame);
}

/* Makes room behind `end`: moves the unread bytes to the front, and grows the buffer for
 * a large message. */
static int make_room(struct hvd_link *link)
{
    size_t unread = link->end - link->begin;
    size_t need = wanted_bytes(link);

    if (link->begin > 0) {
        memmove(link->buffer, link->buffer + link->begin, unread);
        link->begin = 0;
        link->end = unread;
    }
    if (need > link->capacity) {
        char *larger = realloc(link->buffer, need);

        if (larger == NULL) {
            return HVD_ERR_NOMEM;
        }
        link->buffer = larger;
        link->capacity = need;
    }
    return 0;
}

/* Keeps the descriptor that came along. A read brings at most one, with the first bytes
 * of its message, and all whole messages are taken out before the next read: so only one
 * can be waiting, for a message that has arrived in part. If there are two, the sender is
 * hostile, and the first is closed. */
static void keep_fd(struct hvd_link *link, struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int fd = -1;

    if (header != NULL && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    } else if ((message->msg_flags & MSG_CTRUNC) == 0) {
        return;
    }
    if (link->arrived_fd_count == 2) {
        hvd_fork_close_now(take_fd(link));
    }
    link->arrived_fds[link->arrived_fd_count++] = fd;
}

int hvd_link_read(struct hvd_link *link)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    int status = link->end > 0 ? make_room(link) : 0;
    struct iovec iov = {link->buffer + link->end, link->capacity - link->end};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n;

    if (status != 0) {
        return status;
    }
    do {
        n = recvmsg(link->fd, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN && !link->is_broken) {
        return HVD_INPROGRESS;
    }
    if (n <= 0) {
        link->error = n < 0 && errno != EAGAIN ? errno : link->error;
        link->is_broken = true;
        return HVD_ERR_PEER;
    }
    keep_fd(link, &message);
    link->end += (size_t)n;
    return 0;
}

/* Checks the tag of the whole message at `at`. */
static bool is_authentic(struct hvd_link *link, const struct frame *frame, const char *at)
{
    const char *payload = at + sizeof(*frame);
    const unsigned char *tag =
        (const unsigned char *)payload + padded_bytes(frame->bytes);

    if (link->tag_bytes == 0) {
        return true;
    }
    if (!hvd_seal_is_right(&link->received, frame, sizeof(*frame), payload, frame->bytes,
                           tag)) {
        return false;
    }
    link->received.number++;
    return true;
}

int hvd_link_next(struct hvd_link *link, struct hvd_link_message *message)
{
    size_t unread = link->end - link->begin;
    struct frame frame;

    if (unread < sizeof(frame)) {
        return HVD_INPROGRESS;
    }
    memcpy(&frame, link->buffer + link->begin, sizeof(frame));
    if (frame.bytes > link->max_bytes || frame.zero != 0 || frame.carries_fd > 1) {
        return HVD_ERR_NET;
    }
    if (unread < message_bytes(link, &frame)) {
        return HVD_INPROGRESS;
    }
    if (!is_authentic(link, &frame, link->buffer + link->begin)) {
        link->error = EBADMSG;
        return HVD_ERR_NET;
    }
    *message = (struct hvd_link_message){
        .type = frame.type,
        .payload = link->buffer + link->begin + sizeof(frame),
        .bytes = frame.bytes,
        .carries_fd = frame.carries_fd != 0,
        .fd = -1,
    };
    if (message->carries_fd) {
        message->fd = take_fd(link);
    }
    link->begin += message_bytes(link, &frame);
    if (link->begin == link->end) {
        /* The buffer is empty now. The payload still lies in it until the next read. */
        link->begin = 0;
        link->end = 0;
    }
    return 0;
}
