/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a static job ask the service again over a new connection, because the first
 * one was reset. The service need not have noticed that: here the first one stays open.
 * usage: again_test HVD_RENDEZVOUS */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/join.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/start.h"
#include "pmix_boot/sock/socket.h"
#include "tests/tap.h"

enum {
    LIMIT_MS = 60000
};

static char address[HVD_RENDEZVOUS_START_TEXT_BYTES + 16];

static struct hvd_rendezvous_join_query query_of(int rank)
{
    return (struct hvd_rendezvous_join_query){.address = address,
                                              .slot = rank,
                                              .host = "here",
                                              .card = "card",
                                              .card_bytes = 4,
                                              .timeout_ms = LIMIT_MS,
                                              .count = 2,
                                              .index = rank};
}

/* Asks without waiting for the answer. */
static struct hvd_channel *ask(const struct hvd_channel_message *question)
{
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_channel *channel;
    struct hvd_error err;

    if (hvd_rendezvous_call_begin(address, LIMIT_MS, &call, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    channel = hvd_rendezvous_call_release(call);
    (void)hvd_channel_send(channel, question->type, question->data, question->bytes);
    return channel;
}

/* Waits for the answer. Returns whether it makes the asking process rank 0 of 2. */
static bool is_rank_0(struct hvd_channel *channel)
{
    const int64_t deadline_ms = hvd_clock_ms() + LIMIT_MS;
    struct hvd_rendezvous_generation generation = {0};
    struct hvd_channel_message answer;
    struct hvd_error err = {0};
    int culprit, status;

    do {
        (void)hvd_channel_progress(channel);
        status = hvd_channel_next(channel, &answer);
    } while (status == HVD_INPROGRESS &&
             hvd_socket_wait(hvd_channel_fd(channel), POLLIN, deadline_ms));
    if (status != 0) {
        tap_note("no answer: %d", status);
        return false;
    }
    if (hvd_rendezvous_join_read(&answer, &generation, &culprit, &err) != 0) {
        tap_note("%s", err.text);
        return false;
    }
    hvd_rendezvous_join_free(generation.cards, generation.size);
    return generation.rank == 0 && generation.size == 2;
}

static void test_again(void)
{
    const struct hvd_rendezvous_join_query first = query_of(0), other = query_of(1);
    struct hvd_rendezvous_generation generation = {0};
    struct hvd_channel *unnoticed, *again, *after;
    struct hvd_channel_message question, different;
    struct hvd_error err = {0};
    int culprit;

    if (hvd_rendezvous_join_make(&first, &question, &err) != 0 ||
        hvd_rendezvous_join_make(&first, &different, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    unnoticed = ask(&question);
    again = ask(&question);
    after = ask(&different);
    tap_ok(!is_rank_0(after), "another process with the same rank is refused");
    hvd_channel_destroy(after);
    tap_ok(hvd_rendezvous_join_static(&other, &generation, &culprit, &err) == 0,
           "the other rank starts");
    hvd_rendezvous_join_free(generation.cards, generation.size);
    tap_ok(is_rank_0(again), "a rank that asks again gets the answer, although its first "
                             "connection seems to be open");
    tap_ok(!is_rank_0(unnoticed), "the first connection is closed");
    after = ask(&question);
    tap_ok(is_rank_0(after), "a rank that has not got the answer gets it again");
    hvd_channel_destroy(after);
    hvd_channel_destroy(again);
    hvd_channel_destroy(unnoticed);
    free((void *)question.data);
    free((void *)different.data);
}

int main(int argc, char **argv)
{
    const struct hvd_rendezvous_rules rules = {.np = 2, .is_here = true};
    struct hvd_rendezvous_service service;
    struct hvd_error err;

    if (argc != 2 || hvd_rendezvous_start(argv[1], &rules, &service, &err) != 0) {
        printf("Bail out! no service\n");
        return EXIT_FAILURE;
    }
    snprintf(address, sizeof(address), "127.0.0.1:%s", service.address);
    test_again();
    hvd_rendezvous_stop(&service);
    return tap_done();
}
