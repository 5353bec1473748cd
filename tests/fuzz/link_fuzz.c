/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of control links, as a stranger or a broken rank might send them, in pieces of
 * any size. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/sock/link.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_BYTES = 1024
};

/* Returns false when the link has ended. */
static bool read_all(struct hvd_link *link)
{
    struct hvd_link_message message;
    int status;

    while ((status = hvd_link_read(link)) == 0) {
        while ((status = hvd_link_next(link, &message)) == 0) {
            fuzz_touch(message.payload, message.bytes);
            if (message.bytes > MOST_BYTES || (uintptr_t)message.payload % 8 != 0) {
                fuzz_fail("a message is aligned and not longer than allowed");
            }
            hvd_fork_close_now(message.fd);
        }
        if (status < 0) {
            return false;
        }
    }
    return status >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_link *link = NULL;
    bool is_alive = true;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0 ||
        hvd_link_create(ends[0], MOST_BYTES, &link) != 0) {
        abort();
    }
    while (is_alive && input.bytes > 0) {
        size_t bytes, wanted = 1 + (size_t)fuzz_byte(&input) * 4;
        void *piece = fuzz_copy(&input, wanted, &bytes);

        if (bytes > 0 && write(ends[1], piece, bytes) != (ssize_t)bytes) {
            abort();
        }
        free(piece);
        is_alive = read_all(link);
    }
    close(ends[1]);
    if (is_alive) {
        (void)read_all(link);
    }
    hvd_link_destroy(link);
    return 0;
}
