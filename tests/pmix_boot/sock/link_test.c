/* SPDX-License-Identifier: Apache-2.0 */
/* Framed messages over a stream socket. */
#include "pmix_boot/sock/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    LIMIT = 1 << 20,
    FRAME_BYTES = 16
};

static void open_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
        printf("Bail out! socketpair\n");
        exit(1);
    }
}

static struct hvd_link *link_on(int fd)
{
    struct hvd_link *link = NULL;

    if (hvd_link_create(fd, LIMIT, &link) != 0) {
        printf("Bail out! hvd_link_create\n");
        exit(1);
    }
    return link;
}

/* Reads until a message is there or nothing more arrives. */
static int receive(struct hvd_link *link, struct hvd_link_message *message)
{
    int status = hvd_link_next(link, message);

    while (status == HVD_INPROGRESS) {
        status = hvd_link_read(link);
        if (status != 0) {
            return status;
        }
        status = hvd_link_next(link, message);
    }
    return status;
}

static bool is_message(const struct hvd_link_message *message, uint32_t type,
                       const char *data, size_t bytes)
{
    return message->type == type && message->bytes == bytes &&
           ((uintptr_t)message->payload & 7) == 0 &&
           (bytes == 0 || memcmp(message->payload, data, bytes) == 0);
}

static void random_messages_arrive(unsigned seed, bool is_protected)
{
    int fds[2];
    static const unsigned char one[HVD_SEAL_KEY_BYTES] = "one";
    static const unsigned char other[HVD_SEAL_KEY_BYTES] = "other";
    char *data = malloc(LIMIT);
    struct hvd_link *from;
    struct hvd_link *to;
    bool is_good = true;

    srandom(seed);
    for (size_t i = 0; i < LIMIT; i++) {
        data[i] = (char)random();
    }
    open_pair(fds);
    from = link_on(fds[0]);
    to = link_on(fds[1]);
    if (is_protected) {
        hvd_link_protect(from, one, other);
        hvd_link_protect(to, other, one);
    }
    for (int round = 0; round < 60 && is_good; round++) {
        size_t bytes[20];
        int count = 1 + (int)(random() % 20);

        for (int i = 0; i < count; i++) {
            bytes[i] = (size_t)random() % ((size_t)1 << (random() % 20));
            is_good =
                hvd_link_send(from, (uint32_t)i, data, bytes[i], -1) == 0 && is_good;
        }
        for (int i = 0; i < count && is_good; i++) {
            struct hvd_link_message message;
            int status;

            while ((status = receive(to, &message)) == HVD_INPROGRESS) {
                hvd_link_flush(from);
            }
            is_good = status == 0 && is_message(&message, (uint32_t)i, data, bytes[i]);
        }
        is_good = is_good && !hvd_link_is_pending(from);
    }
    tap_ok(is_good, "messages of 0 B to 1 MB arrive in order, whole and aligned%s",
           is_protected ? ", also over a protected link" : "");
    hvd_link_destroy(from);
    hvd_link_destroy(to);
    free(data);
}

static void bytes_may_drip(void)
{
    static const uint32_t frame[] = {5, 77, 0, 0};
    char wire[FRAME_BYTES + 8] = {0};
    struct hvd_link_message message;
    struct hvd_link *to;
    int fds[2];
    bool is_good = true;

    memcpy(wire, frame, sizeof(frame));
    memcpy(wire + sizeof(frame), "hello", 5);
    open_pair(fds);
    to = link_on(fds[1]);
    for (size_t i = 0; i + 1 < sizeof(wire); i++) {
        is_good = write(fds[0], wire + i, 1) == 1 &&
                  receive(to, &message) == HVD_INPROGRESS && is_good;
    }
    is_good = write(fds[0], wire + sizeof(wire) - 1, 1) == 1 &&
              receive(to, &message) == 0 && is_message(&message, 77, "hello", 5) &&
              is_good;
    tap_ok(is_good, "a message that comes byte by byte is one message");
    hvd_link_destroy(to);
    close(fds[0]);
}

/* --- protected links --- */

enum {
    WIRE_BYTES = 3 * (FRAME_BYTES + 8 + HVD_SEAL_TAG_BYTES)
};

/* Records three messages as they are sent. */
static void record(char *wire)
{
    static const unsigned char keys[2][HVD_SEAL_KEY_BYTES] = {"child", "parent"};
    struct hvd_link *from;
    size_t bytes = 0;
    int fds[2];

    open_pair(fds);
    from = link_on(fds[0]);
    hvd_link_protect(from, keys[0], keys[1]);
    for (uint32_t i = 0; i < 3; i++) {
        hvd_link_send(from, i, "message", 8, -1);
    }
    while (bytes < WIRE_BYTES) {
        ssize_t got = read(fds[1], wire + bytes, WIRE_BYTES - bytes);

        bytes += got > 0 ? (size_t)got : 0;
    }
    hvd_link_destroy(from);
    close(fds[1]);
}

/* Returns how many messages of the recording are accepted. *error is the reason why the
 * next one is not. */
static int take(const char *wire, size_t bytes, int *error)
{
    static const unsigned char keys[2][HVD_SEAL_KEY_BYTES] = {"child", "parent"};
    struct hvd_link_message message;
    struct hvd_link *to;
    int status = 0;
    int count = 0;
    int fds[2];

    open_pair(fds);
    to = link_on(fds[1]);
    hvd_link_protect(to, keys[1], keys[0]);
    if (write(fds[0], wire, bytes) != (ssize_t)bytes) {
        exit(98);
    }
    while (status == 0 && (status = receive(to, &message)) == 0) {
        count += is_message(&message, (uint32_t)count, "message", 8) ? 1 : 100;
    }
    *error = status == HVD_ERR_NET ? hvd_link_errno(to) : 0;
    hvd_link_destroy(to);
    close(fds[0]);
    return count;
}

static void protected_messages_are_authentic(void)
{
    const size_t each = WIRE_BYTES / 3;
    char wire[WIRE_BYTES];
    char changed[WIRE_BYTES];
    int wrong = 0;
    int error;

    record(wire);
    tap_ok(take(wire, sizeof(wire), &error) == 3 && error == 0,
           "messages of a protected link arrive");
    /* The length is not changed: with another one, the reader waits for more or rejects
     * it. */
    for (size_t bit = 32; bit < each * 8; bit++) {
        memcpy(changed, wire, sizeof(wire));
        changed[each + bit / 8] ^= (char)(1 << (bit % 8));
        wrong += take(changed, sizeof(wire), &error) != 1 ? 1 : 0;
    }
    tap_ok(wrong == 0, "after a changed bit, no further message arrives");
    memcpy(changed, wire, sizeof(wire));
    changed[each + FRAME_BYTES] ^= 1;
    tap_ok(take(changed, sizeof(wire), &error) == 1 && error == EBADMSG,
           "the reason for a changed bit is a wrong tag");
    memcpy(changed + each, wire, each);
    tap_ok(take(changed, sizeof(wire), &error) == 1 && error == EBADMSG,
           "a repeated message is rejected");
    tap_ok(take(wire + each, 2 * each, &error) == 0 && error == EBADMSG,
           "a message after a missing one is rejected");
}

static void garbage_is_refused(const char *what, const uint32_t frame[4])
{
    struct hvd_link_message message;
    struct hvd_link *to;
    int fds[2];

    open_pair(fds);
    to = link_on(fds[1]);
    tap_ok(write(fds[0], frame, FRAME_BYTES) == FRAME_BYTES &&
               receive(to, &message) == HVD_ERR_NET,
           "%s is rejected", what);
    hvd_link_destroy(to);
    close(fds[0]);
}

static void end_comes_last(void)
{
    struct hvd_link_message message;
    struct hvd_link *from;
    struct hvd_link *to;
    int fds[2];

    open_pair(fds);
    from = link_on(fds[0]);
    to = link_on(fds[1]);
    hvd_link_send(to, 9, "unread", 6, -1);
    hvd_link_send(from, 1, "a", 1, -1);
    hvd_link_send(from, 2, "b", 1, -1);
    hvd_link_destroy(from);
    hvd_link_send(to, 9, "to nobody", 9, -1);
    tap_ok(receive(to, &message) == 0 && message.type == 1 &&
               receive(to, &message) == 0 && message.type == 2 &&
               receive(to, &message) == HVD_ERR_PEER,
           "messages that were sent before the end arrive before it");
    tap_ok(!hvd_link_is_pending(to), "nothing stays queued for an end that is gone");
    hvd_link_destroy(to);
}

static void descriptors_find_their_messages(void)
{
    struct hvd_link *from;
    struct hvd_link *to;
    int fds[2];
    int files[8];
    bool is_good = true;

    open_pair(fds);
    from = link_on(fds[0]);
    to = link_on(fds[1]);
    for (int i = 0; i < 8; i++) {
        files[i] = memfd_create("hvd test", MFD_CLOEXEC);
        is_good = write(files[i], &i, sizeof(i)) == sizeof(i) && is_good;
        hvd_link_send(from, (uint32_t)i, "x", 1, i % 3 == 0 ? -1 : files[i]);
    }
    for (int i = 0; i < 8; i++) {
        struct hvd_link_message message = {.fd = -1};
        int found = -1;

        is_good = receive(to, &message) == 0 && message.type == (uint32_t)i && is_good;
        if (i % 3 == 0) {
            is_good = is_good && message.fd == -1;
        } else {
            is_good = is_good && pread(message.fd, &found, sizeof(found), 0) > 0 &&
                      found == i && (fcntl(message.fd, F_GETFD) & FD_CLOEXEC) != 0;
            close(message.fd);
        }
        close(files[i]);
    }
    tap_ok(is_good, "descriptors come with the messages they were sent with");
    hvd_link_destroy(from);
    hvd_link_destroy(to);
}

/* Sends bytes with a descriptor, unless it is -1. */
static void send_raw(int to, const void *data, size_t bytes, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.align = {.cmsg_len = CMSG_LEN(sizeof(int)),
                           .cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    if (sendmsg(to, &message, MSG_NOSIGNAL) != (ssize_t)bytes) {
        printf("Bail out! sendmsg\n");
        exit(1);
    }
}

/* Two messages with descriptors: a part of the first, then its rest and the second, which
 * the link reads at once. */
static void descriptors_find_torn_messages(void)
{
    static const uint32_t frame[4] = {0, 1, 1, 0};
    struct hvd_link_message message = {.fd = -1};
    struct hvd_link *to;
    int fds[2], files[2];
    bool is_good = true;

    open_pair(fds);
    to = link_on(fds[1]);
    for (int i = 0; i < 2; i++) {
        files[i] = memfd_create("hvd test", MFD_CLOEXEC);
        is_good = write(files[i], &i, sizeof(i)) == sizeof(i) && is_good;
    }
    send_raw(fds[0], frame, 4, files[0]);
    is_good = is_good && receive(to, &message) == HVD_INPROGRESS;
    send_raw(fds[0], frame + 1, FRAME_BYTES - 4, -1);
    send_raw(fds[0], frame, FRAME_BYTES, files[1]);
    for (int i = 0; i < 2; i++) {
        int found = -1;

        is_good = is_good && receive(to, &message) == 0 &&
                  pread(message.fd, &found, sizeof(found), 0) > 0 && found == i;
        close(message.fd);
        close(files[i]);
    }
    tap_ok(is_good, "descriptors find messages that arrive in parts");
    hvd_link_destroy(to);
    close(fds[0]);
}

int main(void)
{
    static const uint32_t too_long[] = {LIMIT + 1, 1, 0, 0};
    static const uint32_t huge[] = {UINT32_MAX, 1, 0, 0};
    static const uint32_t strange[] = {4, 1, 0, 12};

    unsigned seed = tap_seed(7);

    random_messages_arrive(seed, false);
    random_messages_arrive(seed, true);
    protected_messages_are_authentic();
    bytes_may_drip();
    garbage_is_refused("a message above the limit", too_long);
    garbage_is_refused("a message of 4 GB", huge);
    garbage_is_refused("a frame with something where zero must be", strange);
    end_comes_last();
    descriptors_find_their_messages();
    descriptors_find_torn_messages();
    return tap_done();
}
