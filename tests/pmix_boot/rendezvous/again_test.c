/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks ask the service again over a new connection, because the first one was reset. In
 * a static job the service need not have noticed that: here the first one stays open.
 * usage: again_test HVD_RENDEZVOUS */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

/* Returns what a rank asks. The count is 0 in an elastic job. */
static struct hvd_rendezvous_join_query query_of(int rank, int count)
{
    return (struct hvd_rendezvous_join_query){.address = address,
                                              .slot = rank,
                                              .host = "here",
                                              .card = "card",
                                              .card_bytes = 4,
                                              .timeout_ms = LIMIT_MS,
                                              .count = count,
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

/* Waits for the answer. Returns whether it makes the asking process this rank. */
static bool is_rank(struct hvd_channel *channel, int rank, int size)
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
    return generation.rank == rank && generation.size == size;
}

static void test_again(void)
{
    static const int list[] = {2};
    const struct hvd_rendezvous_join_query first = query_of(0, 2), other = query_of(1, 2);
    const struct hvd_rendezvous_join_query alone = {.address = address,
                                                    .slot = list[0],
                                                    .host = "here",
                                                    .card = "card",
                                                    .card_bytes = 4,
                                                    .timeout_ms = LIMIT_MS,
                                                    .count = 1,
                                                    .ranks = list};
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
    tap_ok(!is_rank(after, 0, 2), "another process with the same rank is refused");
    hvd_channel_destroy(after);
    tap_ok(hvd_rendezvous_join_static(&other, &generation, &culprit, &err) == 0,
           "the other rank starts");
    hvd_rendezvous_join_free(generation.cards, generation.size);
    tap_ok(is_rank(again, 0, 2),
           "a rank that asks again gets the answer, although its first "
           "connection seems to be open");
    tap_ok(!is_rank(unnoticed, 0, 2), "the first connection is closed");
    tap_ok(hvd_rendezvous_join_static(&alone, &generation, &culprit, &err) == 0,
           "a rank of another list starts");
    hvd_rendezvous_join_free(generation.cards, generation.size);
    after = ask(&question);
    tap_ok(is_rank(after, 0, 2), "a rank that has not got the answer gets it again, also "
                                 "when others have started since");
    hvd_channel_destroy(after);
    hvd_channel_destroy(again);
    hvd_channel_destroy(unnoticed);
    free((void *)question.data);
    free((void *)different.data);
}

static struct hvd_channel *ask_elastic(int rank)
{
    const struct hvd_rendezvous_join_query query = query_of(rank, 0);
    struct hvd_channel_message question;
    struct hvd_channel *channel;
    struct hvd_error err;

    if (hvd_rendezvous_join_make(&query, &question, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    channel = ask(&question);
    free((void *)question.data);
    return channel;
}

static void reset(struct hvd_channel *channel)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(hvd_channel_fd(channel), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    hvd_channel_destroy(channel);
}

static void test_elastic(void)
{
    struct hvd_channel *first = ask_elastic(1);
    struct hvd_channel *ranks[3] = {ask_elastic(0)}; /* the service has read `first` */
    bool is_whole = true;

    reset(first);
    ranks[1] = ask_elastic(1);
    ranks[2] = ask_elastic(2);
    for (int rank = 0; rank < 3; rank++) {
        is_whole = is_rank(ranks[rank], rank, 3) && is_whole;
        hvd_channel_destroy(ranks[rank]);
    }
    tap_ok(is_whole, "elastic job: a rank asks again after a reset, and all ranks begin "
                     "together");
}

/* Runs a test with a service of its own. */
static void with_service(const char *program, const struct hvd_rendezvous_rules *rules,
                         void (*test)(void))
{
    struct hvd_rendezvous_service service;
    struct hvd_error err;

    if (hvd_rendezvous_start(program, rules, &service, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    snprintf(address, sizeof(address), "127.0.0.1:%s", service.address);
    test();
    hvd_rendezvous_stop(&service);
}

int main(int argc, char **argv)
{
    const struct hvd_rendezvous_rules rules = {.np = 2, .is_here = true};
    const struct hvd_rendezvous_rules elastic = {.np = 3,
                                                 .is_here = true,
                                                 .min = 1,
                                                 .max = 3,
                                                 .start_s = LIMIT_MS / 1000,
                                                 .timeout_s = LIMIT_MS / 1000,
                                                 .reset_limit = -1};

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    with_service(argv[1], &rules, test_again);
    with_service(argv[1], &elastic, test_elastic);
    return tap_done();
}
