/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers connect to the control socket of a rank. Whatever their connections send,
 * nobody may be let in without the secret. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/connect/acceptor.h"
#include "collectives/transport/connect/connect_protocol.h"
#include "pmix_boot/sock/handshake.h"
#include "pmix_boot/sock/socket.h"
#include "tests/fuzz/fuzz.h"

enum {
    STRANGERS = 4,
    CHILDREN = 2,
    MOST_POLLED = 64
};

static bool admit(void *context, int child, struct hvd_link *link,
                  const struct hvd_handshake_keys *keys)
{
    (void)keys;
    (void)context;
    (void)child;
    (void)link;
    fuzz_fail("nobody is let in without the secret");
    return false;
}

static void step(struct hvd_acceptor *acceptor, int64_t now_ms)
{
    struct pollfd fds[MOST_POLLED];
    int64_t deadline_ms = INT64_MAX;
    int count;

    if (hvd_acceptor_capacity(acceptor) > MOST_POLLED) {
        abort();
    }
    count = hvd_acceptor_poll(acceptor, fds, &deadline_ms);
    if (poll(fds, (nfds_t)count, 0) >= 0) {
        hvd_acceptor_step(acceptor, fds, now_ms, admit, NULL);
    }
}

/* Sends a frame whose beginning is right more often than random bytes would be. */
static void send_something(struct fuzz_input *input, int fd)
{
    uint8_t kind = fuzz_byte(input);
    uint32_t head[4] = {0, HVD_CONNECT_HELLO + kind % 3, 0, 0};
    size_t bytes;
    unsigned char *data = fuzz_copy(input, kind, &bytes);

    if ((kind & 64) != 0) {
        head[0] = (uint32_t)bytes;
        (void)send(fd, head, sizeof(head), MSG_NOSIGNAL);
    }
    if ((kind & 128) != 0) {
        struct hvd_handshake_hello hello = {
            .magic = HVD_HANDSHAKE_MAGIC, .child = 1, .parent = 0};

        head[0] = sizeof(hello);
        head[1] = HVD_CONNECT_HELLO;
        (void)send(fd, head, sizeof(head), MSG_NOSIGNAL);
        (void)send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
    }
    (void)send(fd, data, bytes, MSG_NOSIGNAL);
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hvd_acceptor_doors doors;
    static char name[HVD_SOCKET_NAME_BYTES];
    struct fuzz_input input = {data, size};
    static const unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES] = "not for strangers";
    const struct hvd_handshake_party self = {.rank = 0, .size = 3, .secret = secret};
    struct hvd_acceptor *acceptor = NULL;
    int strangers[STRANGERS];
    int64_t now_ms = 1000;

    if (doors.count == 0 && hvd_socket_listen_unix(&doors.fds[0], name, NULL) != 0) {
        abort();
    }
    doors.count = 1;
    if (hvd_acceptor_create(&self, &doors, CHILDREN, &acceptor) != 0) {
        abort();
    }
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = hvd_socket_connect_unix(name);
    }
    step(acceptor, now_ms);
    while (input.bytes > 0) {
        uint8_t which = fuzz_byte(&input);

        send_something(&input, strangers[which % STRANGERS]);
        now_ms += which / STRANGERS;
        step(acceptor, now_ms);
    }
    step(acceptor, now_ms + 10000);
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    hvd_acceptor_destroy(acceptor);
    return 0;
}
