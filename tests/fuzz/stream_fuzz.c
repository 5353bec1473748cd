/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a peer that has passed the handshake may send over TCP, in pieces of any
 * size. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/net/net_stream.h"
#include "gpu_binding/base/hvd_status.h"
#include "tests/fuzz/fuzz.h"

enum {
    LANGUAGE = 0x32766468,
};

/* Accepts fragments, but ends the connection at the third one whose channel is odd. */
static int arrived(void *context, const struct hvd_net_header *header, const void *data,
                   size_t bytes)
{
    int *odd = context;

    fuzz_touch(header, sizeof(*header));
    fuzz_touch(data, bytes);
    if (bytes > HVD_NET_FRAGMENT_BYTES) {
        fuzz_fail("a fragment is not longer than allowed");
    }
    *odd += header->channel % 2 != 0 ? 1 : 0;
    return *odd < 3 ? 0 : HVD_ERR_NET;
}

static void put(int fd, const void *data, size_t bytes)
{
    if (bytes > 0 && write(fd, data, bytes) != (ssize_t)bytes) {
        abort();
    }
}

/* Writes the front of a fragment with a correct tag, as a rank that has the keys
 * would. */
static void put_front(int fd, struct fuzz_input *input, struct hvd_net_seal *seal)
{
    const uint32_t word = fuzz_word(input);
    const uint32_t most = word % 8 == 0 ? HVD_NET_FRAGMENT_BYTES + 1 : 64;
    struct {
        uint16_t bytes;
        uint16_t covered;
        uint32_t magic;
        struct hvd_net_header header;
        unsigned char tag[HVD_SEAL_TAG_BYTES];
    } front = {(uint16_t)(word / 8 % most), 0, LANGUAGE, {.channel = word >> 16}, {0}};
    const struct hvd_net_sealed sealed = {&front, sizeof(front) - sizeof(front.tag), 0,
                                          front.tag};

    hvd_net_seal_close(seal, &sealed, NULL, 0, NULL);
    put(fd, &front, sizeof(front));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_net_buffers buffers = {0};
    struct hvd_net_inlet inlet = {0};
    struct hvd_net_seal seal = {0};
    int status = 0;
    int odd = 0;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        abort();
    }
    inlet.fd = ends[0];
    while (status >= 0 && input.bytes > 0) {
        uint8_t what = fuzz_byte(&input);
        size_t bytes;
        void *piece = fuzz_copy(&input, 1 + (size_t)(what / 2) * 4, &bytes);

        if (what % 2 != 0) {
            put_front(ends[1], &input, &seal);
        }
        put(ends[1], piece, bytes);
        free(piece);
        status = hvd_net_inlet_read(&inlet, &buffers, arrived, &odd);
    }
    close(ends[1]);
    while (status >= 0) {
        status = hvd_net_inlet_read(&inlet, &buffers, arrived, &odd);
    }
    hvd_net_inlet_finish(&inlet, &buffers);
    hvd_net_buffers_finish(&buffers);
    close(ends[0]);
    return 0;
}
