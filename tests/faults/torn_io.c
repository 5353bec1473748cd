/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD that makes stream sockets behave as badly as POSIX allows.
 * At random, reads and writes move only a part of the bytes, or fail with EINTR or,
 * where the caller does not block, with EAGAIN; poll and epoll_wait end with EINTR;
 * accept fails with EINTR or EAGAIN.
 *
 *   HVD_TEST_SEED          repeats the choices of one process, but not the timing. If
 *                          it is not set, the first process draws and prints it
 *   HVD_TEST_TORN_RESET=N  the N-th read or write of a TCP connection in this process
 *                          resets the connection, which both ends see */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"

enum {
    MOST_PIECES = 64, /* of a torn call; those behind are left out */
    FEW_BYTES = 40, /* a short part, less than most headers */
};

static struct {
    uint64_t seed;
    _Atomic uint64_t choices;
    _Atomic long until_reset; /* 0: no reset */
    ssize_t (*send)(int, const void *, size_t, int);
    ssize_t (*recv)(int, void *, size_t, int);
    ssize_t (*sendmsg)(int, const struct msghdr *, int);
    ssize_t (*recvmsg)(int, struct msghdr *, int);
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*readv)(int, const struct iovec *, int);
    ssize_t (*writev)(int, const struct iovec *, int);
    int (*accept4)(int, struct sockaddr *, socklen_t *, int);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*epoll_wait)(int, struct epoll_event *, int, int);
} torn;

/* Stores the next function of this name; ISO C has no cast from an object's address. */
static void find_next(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof(found));
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t draw(void)
{
    return mix(torn.seed + atomic_fetch_add(&torn.choices, 1) * 0x9e3779b97f4a7c15u);
}

static void draw_seed(char text[24])
{
    uint32_t seed = 1;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        seed = (uint32_t)getpid();
    }
    snprintf(text, 24, "%u", seed);
    setenv("HVD_TEST_SEED", text, 1);
    fprintf(stderr, "# torn_io: seed %s: HVD_TEST_SEED=%s repeats it\n", text, text);
}

__attribute__((constructor)) static void begin(void)
{
    const char *seed = getenv("HVD_TEST_SEED"), *rank = getenv("HOROVOD_RANK");
    const char *reset = getenv("HVD_TEST_TORN_RESET");
    char drawn[24];

    find_next("send", &torn.send);
    find_next("recv", &torn.recv);
    find_next("sendmsg", &torn.sendmsg);
    find_next("recvmsg", &torn.recvmsg);
    find_next("read", &torn.read);
    find_next("write", &torn.write);
    find_next("readv", &torn.readv);
    find_next("writev", &torn.writev);
    find_next("accept4", &torn.accept4);
    find_next("poll", &torn.poll);
    find_next("epoll_wait", &torn.epoll_wait);
    if (seed == NULL) {
        draw_seed(drawn);
        seed = drawn;
    }
    torn.seed =
        mix(strtoull(seed, NULL, 10)) + (rank != NULL ? strtoull(rank, NULL, 10) + 1 : 0);
    atomic_store(&torn.until_reset, reset != NULL ? strtol(reset, NULL, 10) : 0);
}

/* --- what may happen to a call --- */

/* The outcome of a read or write. */
enum fate {
    WHOLE,
    SHORT,
    FAILED, /* errno is set */
};

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof(type);
    int saved = errno;
    bool is_one = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;

    errno = saved;
    return is_one && type == SOCK_STREAM;
}

static bool is_tcp(int fd)
{
    int domain = 0;
    socklen_t bytes = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

static bool may_block(int fd, int flags)
{
    return (flags & MSG_DONTWAIT) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

/* Resets the connection if its turn has come: both ends then have ECONNRESET. */
static bool reset_now(int fd)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

    if (atomic_load(&torn.until_reset) == 0 || !is_tcp(fd) ||
        atomic_fetch_sub(&torn.until_reset, 1) != 1) {
        return false;
    }
    (void)connect(fd, &nowhere, sizeof(nowhere));
    dprintf(STDERR_FILENO, "torn_io: reset a connection\n");
    errno = ECONNRESET;
    return true;
}

static enum fate fate_of(int fd, int flags)
{
    uint64_t choice = draw() % 16;

    if ((flags & MSG_PEEK) != 0 || !is_stream(fd)) {
        return WHOLE;
    }
    if (reset_now(fd)) {
        return FAILED;
    }
    if (choice == 0) {
        errno = EINTR;
        return FAILED;
    }
    if (choice == 1 && !may_block(fd, flags)) {
        errno = EAGAIN;
        return FAILED;
    }
    return choice < 6 ? SHORT : WHOLE;
}

/* Returns a part of `bytes`, at least 1 byte. */
static size_t part_of(size_t bytes)
{
    uint64_t choice = draw();
    size_t most = choice % 2 == 0 && bytes > FEW_BYTES ? FEW_BYTES : bytes;

    return bytes > 1 ? 1 + (size_t)(choice >> 8) % most : bytes;
}

/* Decides how many of *bytes a call moves. Returns false if it fails, with errno set. */
static bool tear(int fd, int flags, size_t *bytes)
{
    enum fate fate = fate_of(fd, flags);

    *bytes = fate == SHORT ? part_of(*bytes) : *bytes;
    return fate != FAILED;
}

/* Copies a part of the pieces to `out`; returns their number. */
static int shorten(const struct iovec *pieces, size_t count,
                   struct iovec out[MOST_PIECES])
{
    size_t bytes = 0, left;
    int used = 0;

    count = count < MOST_PIECES ? count : MOST_PIECES;
    for (size_t i = 0; i < count; i++) {
        bytes += pieces[i].iov_len;
    }
    left = part_of(bytes);
    for (; used < (int)count && left > 0; used++) {
        out[used] = pieces[used];
        out[used].iov_len = out[used].iov_len < left ? out[used].iov_len : left;
        left -= out[used].iov_len;
    }
    return used;
}

/* Like tear, for a call with pieces: `out` has room for those of a short part. */
static bool tear_pieces(int fd, const struct iovec **pieces, int *count,
                        struct iovec out[MOST_PIECES])
{
    enum fate fate = fate_of(fd, 0);

    if (fate == SHORT) {
        *count = shorten(*pieces, (size_t)*count, out);
        *pieces = out;
    }
    return fate != FAILED;
}

/* --- the calls --- */

HVD_EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return tear(fd, flags, &bytes) ? torn.send(fd, data, bytes, flags) : -1;
}

HVD_EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    return tear(fd, flags, &bytes) ? torn.recv(fd, data, bytes, flags) : -1;
}

HVD_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    enum fate fate = fate_of(fd, flags);
    struct iovec pieces[MOST_PIECES];
    struct msghdr part = *message;

    if (fate == SHORT) {
        part.msg_iovlen = (size_t)shorten(message->msg_iov, message->msg_iovlen, pieces);
        part.msg_iov = pieces;
    }
    return fate == FAILED ? -1 : torn.sendmsg(fd, &part, flags);
}

HVD_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    enum fate fate = fate_of(fd, flags);
    struct iovec pieces[MOST_PIECES];
    struct msghdr part = *message;
    ssize_t bytes;

    if (fate != SHORT) {
        return fate == FAILED ? -1 : torn.recvmsg(fd, message, flags);
    }
    part.msg_iovlen = (size_t)shorten(message->msg_iov, message->msg_iovlen, pieces);
    part.msg_iov = pieces;
    bytes = torn.recvmsg(fd, &part, flags);
    message->msg_namelen = part.msg_namelen;
    message->msg_controllen = part.msg_controllen;
    message->msg_flags = part.msg_flags;
    return bytes;
}

HVD_EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
    return tear(fd, 0, &bytes) ? torn.read(fd, data, bytes) : -1;
}

HVD_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    return tear(fd, 0, &bytes) ? torn.write(fd, data, bytes) : -1;
}

HVD_EXPORT ssize_t readv(int fd, const struct iovec *pieces, int count)
{
    struct iovec part[MOST_PIECES];

    return tear_pieces(fd, &pieces, &count, part) ? torn.readv(fd, pieces, count) : -1;
}

HVD_EXPORT ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    struct iovec part[MOST_PIECES];

    return tear_pieces(fd, &pieces, &count, part) ? torn.writev(fd, pieces, count) : -1;
}

HVD_EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    uint64_t choice = draw() % 8;

    if (choice == 0 || (choice == 1 && !may_block(fd, 0))) {
        errno = choice == 0 ? EINTR : EAGAIN;
        return -1;
    }
    return torn.accept4(fd, address, length, flags);
}

HVD_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (timeout_ms != 0 && draw() % 8 == 0) {
        errno = EINTR;
        return -1;
    }
    return torn.poll(fds, count, timeout_ms);
}

HVD_EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    if (timeout_ms != 0 && draw() % 8 == 0) {
        errno = EINTR;
        return -1;
    }
    return torn.epoll_wait(fd, events, most, timeout_ms);
}
