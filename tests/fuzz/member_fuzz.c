/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that a rank of an elastic job accepts from its rendezvous service.
 * Includes client.c to call its static functions: the public ones would wait for
 * answers. */
#include "pmix_boot/rendezvous/client.c"

#include "tests/fuzz/fuzz.h"

static const unsigned char key[HVD_CHANNEL_KEY_BYTES] = "the key of this job";

static struct hvd_channel *open_service(void)
{
    struct hvd_channel *service = NULL;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0 ||
        hvd_channel_create(ends[0], HVD_CHANNEL_SERVICE, key, &service) != 0 ||
        hvd_channel_create(ends[1], HVD_CHANNEL_RANK, key, &client.channel) != 0) {
        abort();
    }
    for (int i = 0; i < 3; i++) {
        (void)hvd_channel_progress(service);
        (void)hvd_channel_progress(client.channel);
    }
    return service;
}

static void check(const struct hvd_rendezvous_generation *generation)
{
    if (generation->size < 1 || generation->rank < 0 ||
        generation->rank >= generation->size) {
        fuzz_fail("this rank is one of the generation");
    }
    for (int i = 0; i < generation->size; i++) {
        fuzz_touch(generation->cards[i].data, generation->cards[i].bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_channel *service = open_service();

    while (input.bytes > 0 && client.channel != NULL) {
        uint8_t type = fuzz_byte(&input);
        struct hvd_rendezvous_generation generation;
        struct hvd_error err = {0};
        size_t bytes;
        void *message = fuzz_copy(&input, fuzz_byte(&input), &bytes);

        (void)hvd_channel_send(service, type % 8, message, bytes);
        free(message);
        if (take_answer(&generation, &err) == 0) {
            check(&generation);
            hvd_rendezvous_join_free(generation.cards, generation.size);
        }
        (void)hvd_rendezvous_client_notices();
    }
    hvd_channel_destroy(client.channel);
    client.channel = NULL;
    hvd_channel_destroy(service);
    return 0;
}
