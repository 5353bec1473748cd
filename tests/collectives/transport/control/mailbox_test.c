/* SPDX-License-Identifier: Apache-2.0 */
/* What a mailbox promises, step by step, in one thread. */
#include "collectives/transport/control/mailbox.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/transport/control/mailbox_data.h"
#include "tests/tap.h"

enum {
    RANKS = 3
};

struct node {
    void *memory;
    struct hvd_mailbox *box[RANKS];
    struct mailbox_tally tally[RANKS];
};

static void open_node(struct node *node, unsigned seed)
{
    size_t bytes = (hvd_mailbox_bytes(RANKS) + 127) / 128 * 128;

    *node = (struct node){.memory = aligned_alloc(128, bytes)};
    memset(node->memory, 0, bytes);
    for (int i = 0; i < RANKS; i++) {
        node->tally[i].seed = seed;
        if (hvd_mailbox_create(node->memory, i, RANKS, &node->box[i], NULL) != 0) {
            printf("Bail out! cannot create a mailbox\n");
            exit(99);
        }
    }
}

static void close_node(struct node *node)
{
    for (int i = 0; i < RANKS; i++) {
        hvd_mailbox_destroy(node->box[i]);
    }
    free(node->memory);
}

static int look(struct node *node, int rank)
{
    return hvd_mailbox_progress(node->box[rank], mailbox_check, &node->tally[rank]);
}

static bool is_wrong(const struct node *node)
{
    return node->tally[0].is_wrong || node->tally[1].is_wrong || node->tally[2].is_wrong;
}

struct letter {
    int count;
    int from;
    bool is_right;
};

static void check_letter(void *context, int from, uint32_t type, const void *payload,
                         size_t bytes)
{
    struct letter *letter = context;

    letter->count++;
    letter->from = from;
    letter->is_right = type == 5 && bytes == 5 && memcmp(payload, "hello", 5) == 0;
}

/* Whether exactly one letter arrives, the right one. */
static bool gets_letter(struct node *node, int rank, int from)
{
    struct letter letter = {0};
    int first = hvd_mailbox_progress(node->box[rank], check_letter, &letter);
    int second = hvd_mailbox_progress(node->box[rank], check_letter, &letter);

    return first == 1 && second == 0 && letter.count == 1 && letter.from == from &&
           letter.is_right && !hvd_mailbox_has_mail(node->box[rank]);
}

static void test_one_message(void)
{
    struct node node;
    struct hvd_mailbox *const *box = node.box;

    open_node(&node, 1);
    tap_ok(!hvd_mailbox_has_mail(box[0]) && !hvd_mailbox_take_ring(box[0], 1) &&
               look(&node, 0) == 0,
           "at_first_there_is_no_mail_and_nobody_to_wake");
    hvd_mailbox_send(box[2], 5, "hello", 5);
    tap_ok(hvd_mailbox_take_ring(box[2], 0) && !hvd_mailbox_take_ring(box[2], 0) &&
               !hvd_mailbox_take_ring(box[2], 1),
           "who_writes_to_the_leader_wakes_the_leader_once");
    tap_ok(hvd_mailbox_has_mail(box[0]) && !hvd_mailbox_has_mail(box[1]) &&
               gets_letter(&node, 0, 2),
           "the_leader_gets_it_once");
    tap_ok(!hvd_mailbox_take_ring(box[0], 2),
           "a_sender_that_does_not_wait_for_room_is_not_woken");
    hvd_mailbox_send(box[0], 5, "hello", 5);
    tap_ok(hvd_mailbox_take_ring(box[0], 1) && hvd_mailbox_take_ring(box[0], 2) &&
               !hvd_mailbox_take_ring(box[0], 0),
           "the_leader_wakes_all_others");
    tap_ok(gets_letter(&node, 1, 0) && gets_letter(&node, 2, 0),
           "all_others_get_what_the_leader_sends_once");
    close_node(&node);
}

/* Nobody reads at first; then one reader does and the other stays behind. */
static void test_full_ring(unsigned seed)
{
    const uint32_t count = 400;
    struct node node;
    bool is_refused = false;
    bool is_woken = true;

    open_node(&node, seed);
    for (uint32_t i = 0; i < count; i++) {
        is_refused |= mailbox_post(node.box[0], seed, 0, i) != 0;
    }
    tap_ok(!is_refused && hvd_mailbox_is_pending(node.box[0]) &&
               !hvd_mailbox_has_mail(node.box[0]),
           "sending_into_a_full_ring_does_not_block");
    look(&node, 1);
    is_woken &= hvd_mailbox_take_ring(node.box[1], 0);
    tap_ok(is_woken && look(&node, 1) == 0 && !hvd_mailbox_has_mail(node.box[0]),
           "a_reader_that_stays_behind_loses_nothing");
    while (node.tally[2].got[0] < count && is_woken) {
        look(&node, 2);
        is_woken =
            hvd_mailbox_take_ring(node.box[2], 0) || !hvd_mailbox_is_pending(node.box[0]);
        is_woken &=
            hvd_mailbox_has_mail(node.box[0]) || !hvd_mailbox_is_pending(node.box[0]);
        look(&node, 0);
        look(&node, 1);
    }
    tap_ok(is_woken, "who_makes_room_wakes_the_sender_that_waits_for_it");
    tap_ok(!is_wrong(&node) && node.tally[1].got[0] == count &&
               node.tally[2].got[0] == count && !hvd_mailbox_is_pending(node.box[0]),
           "all_arrives_in_order");
    close_node(&node);
}

/* Sends and reads in random order: the messages begin and end at every place of the rings. */
static void test_random_order(unsigned seed)
{
    struct node node;
    uint32_t sent[RANKS] = {0};
    bool is_refused = false;

    srand(seed);
    open_node(&node, seed);
    for (int i = 0; i < 20000; i++) {
        int rank = rand() % RANKS;

        if (rand() % 2 == 0) {
            is_refused |= mailbox_post(node.box[rank], seed, rank, sent[rank]) != 0;
            sent[rank]++;
        } else {
            look(&node, rank);
        }
    }
    for (int i = 0; i < 100000; i++) {
        look(&node, i % RANKS);
    }
    tap_ok(!is_refused && !is_wrong(&node) && node.tally[0].got[1] == sent[1] &&
               node.tally[0].got[2] == sent[2] && node.tally[1].got[0] == sent[0] &&
               node.tally[2].got[0] == sent[0],
           "nothing_is_lost_or_changed_in_20000_random_steps");
    close_node(&node);
}

struct largest {
    size_t bytes;
    int count;
    bool is_right;
};

static void check_largest(void *context, int from, uint32_t type, const void *payload,
                          size_t bytes)
{
    struct largest *largest = context;
    const char *text = payload;

    largest->count++;
    largest->is_right = from == 0 && type == 7 && bytes == largest->bytes &&
                        text[0] == 'a' && text[bytes / 2] == 'm' &&
                        text[bytes - 1] == 'z';
}

static void test_largest(void)
{
    struct largest largest = {.bytes = (size_t)64 << 20};
    char *payload = calloc(1, largest.bytes);
    struct node node;

    open_node(&node, 1);
    payload[0] = 'a';
    payload[largest.bytes / 2] = 'm';
    payload[largest.bytes - 1] = 'z';
    hvd_mailbox_send(node.box[0], 7, payload, largest.bytes);
    free(payload);
    for (int i = 0; i < 100000 && (i == 0 || hvd_mailbox_has_mail(node.box[1])); i++) {
        struct largest other = largest;

        hvd_mailbox_progress(node.box[1], check_largest, &largest);
        hvd_mailbox_progress(node.box[2], check_largest, &other);
        hvd_mailbox_progress(node.box[0], check_largest, NULL);
    }
    tap_ok(largest.count == 1 && largest.is_right, "a_message_of_64_MiB_arrives");
    close_node(&node);
}

struct echo {
    struct hvd_mailbox *box; /* NULL: listens only */
    uint32_t heard;
};

static void answer(void *context, int from, uint32_t type, const void *payload,
                   size_t bytes)
{
    struct echo *echo = context;

    (void)from;
    echo->heard++;
    if (echo->box != NULL) {
        hvd_mailbox_send(echo->box, type + 1, payload, bytes);
    }
}

/* Local rank 1 and the leader answer each other, local rank 2 only listens. */
static void test_answer(void)
{
    const uint32_t rounds = 5000;
    struct echo echoes[RANKS] = {{0}};
    struct node node;

    open_node(&node, 1);
    echoes[0].box = node.box[0];
    echoes[1].box = node.box[1];
    hvd_mailbox_send(node.box[1], 0, "", 0);
    for (uint32_t i = 0; i < rounds; i++) {
        for (int rank = 0; rank < RANKS; rank++) {
            hvd_mailbox_progress(node.box[rank], answer, &echoes[rank]);
        }
    }
    tap_ok(echoes[0].heard == rounds && echoes[1].heard == rounds &&
               echoes[2].heard == rounds,
           "a_handler_may_send");
    close_node(&node);
}

static void test_alone(void)
{
    void *memory = aligned_alloc(128, (hvd_mailbox_bytes(1) + 127) / 128 * 128);
    struct hvd_mailbox *box = NULL;

    memset(memory, 0, hvd_mailbox_bytes(1));
    hvd_mailbox_create(memory, 0, 1, &box, NULL);
    tap_ok(hvd_mailbox_send(box, 1, "text", 4) == 0 && !hvd_mailbox_is_pending(box) &&
               !hvd_mailbox_has_mail(box),
           "alone_on_a_node_one_sends_to_nobody");
    hvd_mailbox_destroy(box);
    hvd_mailbox_destroy(NULL);
    free(memory);
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    test_one_message();
    test_full_ring(seed);
    test_random_order(seed);
    test_largest();
    test_answer();
    test_alone();
    return tap_done();
}
