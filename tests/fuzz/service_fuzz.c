/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous service gets messages from ranks that have the key, and bytes from
 * strangers who do not. Includes service.c to call its static functions: its loop would
 * never return. */
#include "pmix_boot/rendezvous/service.c"

#include <sys/socket.h>

#include "tests/fuzz/fuzz.h"

enum {
    CLIENTS = 3
};

static const unsigned char key[HVD_CHANNEL_KEY_BYTES] = "the key of this job";

struct client {
    int fd;
    struct hvd_channel *channel; /* NULL for a stranger */
};

static void serve_all(struct hvd_service *service)
{
    int64_t again_ms;

    for (size_t i = 0; i < service->count; i++) {
        serve_connection(service, &service->connections[i]);
    }
    remove_dead(service);
    if (hvd_service_act(service, &again_ms) != 0) {
        fuzz_fail("the service continues");
    }
}

static void connect_client(struct hvd_service *service, struct client *client,
                           bool has_key)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        abort();
    }
    add_connection(service, ends[0]);
    *client = (struct client){.fd = ends[1]};
    if (has_key) {
        if (hvd_channel_create(ends[1], HVD_CHANNEL_RANK, key, &client->channel) != 0) {
            abort();
        }
        for (int i = 0; i < 3; i++) {
            serve_all(service);
            (void)hvd_channel_progress(client->channel);
        }
    }
}

static void disconnect(struct client *client)
{
    if (client->channel != NULL) {
        hvd_channel_destroy(client->channel);
    } else {
        close(client->fd);
    }
}

/* Sends a join: for an elastic job, for a static one of three ranks, or with a list of
 * ranks. */
static void send_join(const struct client *client, struct fuzz_input *input)
{
    struct hvd_rendezvous_join head = {.timeout_ms = 1000};
    char message[sizeof(head) + 512] = {0};
    const uint8_t what = fuzz_byte(input);

    head.slot = fuzz_byte(input) % 8;
    if ((what & 1) != 0) {
        head.index = what & 4 ? head.slot : fuzz_byte(input) % 4;
        head.count = what & 8 ? 3 : fuzz_byte(input) % 8;
        head.listed = what & 16 ? 0 : head.count;
    }
    head.host_bytes = fuzz_byte(input);
    head.card_bytes = fuzz_byte(input) / 2;
    memcpy(message, &head, sizeof(head));
    (void)hvd_channel_send(client->channel, HVD_RENDEZVOUS_JOIN, message,
                           sizeof(head) + (size_t)head.listed * sizeof(int32_t) +
                               head.host_bytes + head.card_bytes);
}

/* Sends one of the launcher's orders. Orders may come in any sequence. */
static void order(struct hvd_service *service, struct fuzz_input *input)
{
    static const char *const words[] = {"expect 2 without", "leave", "stay", "ended 1"};
    const uint8_t what = fuzz_byte(input);
    char line[64];

    snprintf(line, sizeof(line), "%s %d", words[what % 4], what / 4 % 8 - 1);
    take_order(service, what > 240 ? "done" : line);
}

static void talk(struct client *client, struct fuzz_input *input)
{
    uint8_t what = fuzz_byte(input);
    size_t bytes;
    void *data;

    if (client->channel != NULL && what % 2 == 0) {
        send_join(client, input);
        return;
    }
    data = fuzz_copy(input, what, &bytes);
    if (client->channel != NULL) {
        (void)hvd_channel_send(client->channel, 1 + what / 2 % HVD_RENDEZVOUS_WATCH, data,
                               bytes);
    } else {
        (void)send(client->fd, data, bytes, MSG_NOSIGNAL);
    }
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_rendezvous_service_config config = {.rules = {.np = 2,
                                                             .min = 1,
                                                             .max = 3,
                                                             .start_ms = 1000,
                                                             .timeout_ms = 1000,
                                                             .reset_limit = -1},
                                                   .events = -1};
    struct hvd_service service;
    struct fuzz_input input = {data, size};
    struct client clients[CLIENTS];

    hvd_log_to(NULL, HVD_LOG_OFF);
    memcpy(config.key, key, sizeof(key));
    config.rules.is_elastic = fuzz_byte(&input) % 2 == 0;
    if (begin_service(&service, &config) != 0) {
        abort();
    }
    for (int i = 0; i < CLIENTS; i++) {
        connect_client(&service, &clients[i], i < 2);
    }
    while (input.bytes > 0) {
        uint8_t which = fuzz_byte(&input);
        struct client *client = &clients[which % CLIENTS];

        talk(client, &input);
        serve_all(&service);
        if (which > 230 && which <= 240) {
            order(&service, &input);
            serve_all(&service);
        }
        if (which > 240) {
            disconnect(client);
            connect_client(&service, client, which % 2 == 0);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        disconnect(&clients[i]);
    }
    serve_all(&service);
    finish_service(&service);
    return 0;
}
