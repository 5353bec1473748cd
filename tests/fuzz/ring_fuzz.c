/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of messages in the memory that the ranks of a node share, into which another
 * rank may have written anything. */
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/shm/byte_ring.h"
#include "gpu_binding/base/hvd_status.h"
#include "tests/fuzz/fuzz.h"

enum {
    RING_BYTES = 256
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_ring_head head = {0};
    struct hvd_ring_tail tail = {0};
    struct hvd_ring ring = {
        .head = &head, .tails = &tail, .readers = 1, .bytes = RING_BYTES};
    struct hvd_ring_reader reader = {0};
    int status = 0;

    ring.data = aligned_alloc(8, RING_BYTES);
    if (ring.data == NULL) {
        abort();
    }
    memset(ring.data, 0, RING_BYTES);
    hvd_ring_reader_init(&reader, &ring, 0);
    while (input.bytes > 0 && (status == 0 || status == HVD_INPROGRESS)) {
        size_t bytes, wanted = fuzz_byte(&input);
        uint8_t where = fuzz_byte(&input);
        void *piece = fuzz_copy(&input, wanted, &bytes);
        struct hvd_ring_message message;

        for (size_t i = 0; i < bytes; i++) {
            ring.data[(where + i) % RING_BYTES] = ((char *)piece)[i];
        }
        free(piece);
        atomic_fetch_add(&head.written,
                         (where & 1) != 0 ? where : (bytes + 7) & ~(size_t)7);
        hvd_ring_look(&reader);
        while ((status = hvd_ring_next(&reader, &message)) == 0) {
            fuzz_touch(message.payload, message.bytes);
        }
        (void)hvd_ring_release(&reader);
    }
    hvd_ring_reader_finish(&reader);
    free(ring.data);
    return 0;
}
