/* SPDX-License-Identifier: Apache-2.0 */
/* Tests mail between the ranks of a node, step by step, in one thread. */
#include "collectives/transport/shm/mail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "collectives/transport/shm/byte_ring.h"
#include "collectives/transport/shm/shm.h"
#include "tests/collectives/transport/shm/mail_data.h"
#include "tests/tap.h"

enum {
    RANKS = 3,
    KINDS = 2,
    BOARDS = RANKS * 128, /* bytes before the rings */
};

struct node {
    struct mail_node node;
    struct mail_rank rank[RANKS];
    struct mail_tally tally[RANKS][KINDS];
};

static void open_node(struct node *node, unsigned seed)
{
    *node = (struct node){0};
    mail_open_node(&node->node, RANKS);
    for (int i = 0; i < RANKS; i++) {
        mail_open_rank(&node->node, i, NULL, &node->rank[i]);
        for (int kind = 0; kind < KINDS; kind++) {
            node->tally[i][kind] = (struct mail_tally){
                .kind = (enum hvd_mail_kind)kind, .seed = seed, .rank = i};
        }
    }
}

static void close_node(struct node *node)
{
    for (int i = 0; i < RANKS; i++) {
        mail_close_rank(&node->rank[i]);
    }
    mail_close_node(&node->node);
}

static void fall_asleep(struct node *node, int rank)
{
    hvd_shm_set_asleep(node->rank[rank].shm, true);
}

/* Returns whether the rank was woken since it fell asleep. Wakes it up. */
static bool was_woken(struct node *node, int rank)
{
    eventfd_t rings = 0;
    bool was_rung = eventfd_read(node->node.bells[rank], &rings) == 0;

    hvd_shm_set_asleep(node->rank[rank].shm, false);
    return was_rung && rings == 1;
}

static bool has_come(const struct node *node, int rank, enum hvd_mail_kind kind)
{
    return hvd_mail_has_come(node->rank[rank].mail, kind);
}

static int look(struct node *node, int rank, enum hvd_mail_kind kind)
{
    struct hvd_error err = {0};

    return hvd_mail_progress(node->rank[rank].mail, kind, mail_check,
                             &node->tally[rank][kind], &err);
}

static bool is_wrong(const struct node *node)
{
    bool wrong = false;

    for (int i = 0; i < RANKS * KINDS; i++) {
        wrong |= node->tally[i / KINDS][i % KINDS].is_wrong;
    }
    return wrong;
}

/* --- single letters --- */

struct letter {
    uint32_t type;
    int count;
    int from;
    bool is_right;
};

static int check_letter(void *context, int from, uint32_t type, const void *payload,
                        size_t bytes)
{
    struct letter *letter = context;

    letter->count++;
    letter->from = from;
    letter->is_right =
        type == letter->type && bytes == 5 && memcmp(payload, "hello", 5) == 0;
    return 0;
}

/* Returns whether exactly one letter arrives, with the right contents, and no other is
 * announced. */
static bool gets_letter(struct node *node, int rank, enum hvd_mail_kind kind, int from)
{
    struct letter letter = {.type = kind == HVD_MAIL_CONTROL ? 5 : 0};
    struct hvd_mail *mail = node->rank[rank].mail;
    int looks = 0;

    while (hvd_mail_has_come(mail, kind) && looks < 3) {
        hvd_mail_progress(mail, kind, check_letter, &letter, NULL);
        looks++;
    }
    return looks > 0 && looks < 3 && letter.count == 1 && letter.from == from &&
           letter.is_right;
}

static void send_hello(struct node *node, int rank)
{
    hvd_mail_send_control(node->rank[rank].mail, 5, "hello", 5, NULL);
}

static void test_control(void)
{
    struct node node;

    open_node(&node, 1);
    tap_ok(!has_come(&node, 0, HVD_MAIL_CONTROL) &&
               !has_come(&node, 1, HVD_MAIL_CONTROL) &&
               look(&node, 0, HVD_MAIL_CONTROL) == 0,
           "at first there is no mail");
    for (int i = 0; i < RANKS; i++) {
        fall_asleep(&node, i);
    }
    send_hello(&node, 2);
    tap_ok(was_woken(&node, 0) && !was_woken(&node, 1) && !was_woken(&node, 2),
           "control mail to the leader wakes only the leader");
    tap_ok(has_come(&node, 0, HVD_MAIL_CONTROL) && !has_come(&node, 0, HVD_MAIL_P2P) &&
               !has_come(&node, 1, HVD_MAIL_CONTROL) &&
               gets_letter(&node, 0, HVD_MAIL_CONTROL, 2),
           "the leader gets control mail once");
    for (int i = 0; i < RANKS; i++) {
        fall_asleep(&node, i);
    }
    look(&node, 0, HVD_MAIL_CONTROL);
    tap_ok(!was_woken(&node, 2), "a sender that does not wait for room is not woken");
    fall_asleep(&node, 2);
    send_hello(&node, 0);
    tap_ok(was_woken(&node, 1) && was_woken(&node, 2) && !was_woken(&node, 0),
           "control mail of the leader wakes all other ranks");
    tap_ok(gets_letter(&node, 1, HVD_MAIL_CONTROL, 0) &&
               gets_letter(&node, 2, HVD_MAIL_CONTROL, 0) &&
               !has_come(&node, 0, HVD_MAIL_CONTROL),
           "all other ranks get control mail of the leader once");
    close_node(&node);
}

static void test_message(void)
{
    struct hvd_mail *one;
    struct node node;

    open_node(&node, 1);
    one = node.rank[1].mail;
    for (int i = 0; i < RANKS; i++) {
        fall_asleep(&node, i);
    }
    hvd_mail_send_p2p(one, 2, "hello", 5, NULL);
    tap_ok(was_woken(&node, 2) && !was_woken(&node, 0) &&
               !has_come(&node, 0, HVD_MAIL_P2P) && !has_come(&node, 2, HVD_MAIL_CONTROL),
           "a message wakes only its receiver");
    tap_ok(gets_letter(&node, 2, HVD_MAIL_P2P, 1), "the receiver gets a message once");
    hvd_mail_send_p2p(one, 2, "hello", 5, NULL);
    tap_ok(gets_letter(&node, 2, HVD_MAIL_P2P, 1),
           "the receiver gets the next message as well");
    hvd_mail_suppress_p2p(node.rank[2].mail, true);
    fall_asleep(&node, 2);
    hvd_mail_send_p2p(one, 2, "hello", 5, NULL);
    tap_ok(!was_woken(&node, 2) && !has_come(&node, 2, HVD_MAIL_P2P),
           "messages do not wake a rank that has suppressed them");
    send_hello(&node, 0);
    tap_ok(has_come(&node, 2, HVD_MAIL_CONTROL), "control mail cannot be suppressed");
    hvd_mail_suppress_p2p(node.rank[2].mail, false);
    tap_ok(gets_letter(&node, 2, HVD_MAIL_P2P, 1),
           "a suppressed message comes when it is suppressed no longer");
    close_node(&node);
}

/* --- full rings --- */

/* Local rank 0 sends. At first no rank reads, then one rank reads while another lags
 * behind. */
static void test_full_control(unsigned seed)
{
    const uint32_t count = 400;
    struct node node;
    bool is_refused = false, is_told = true;

    open_node(&node, seed);
    for (uint32_t i = 0; i < count; i++) {
        is_refused |= mail_post(node.rank[0].mail, HVD_MAIL_CONTROL, seed, 0, 0, i) != 0;
    }
    tap_ok(!is_refused && hvd_mail_control_waits(node.rank[0].mail) &&
               !has_come(&node, 0, HVD_MAIL_CONTROL),
           "sending into a full ring does not block");
    fall_asleep(&node, 0);
    look(&node, 1, HVD_MAIL_CONTROL);
    look(&node, 0, HVD_MAIL_CONTROL);
    tap_ok(was_woken(&node, 0) && look(&node, 1, HVD_MAIL_CONTROL) == 0 &&
               !has_come(&node, 0, HVD_MAIL_CONTROL),
           "a reader that lags behind loses no mail");
    while (node.tally[2][0].got[0] < count && is_told) {
        bool waited = hvd_mail_control_waits(node.rank[0].mail);

        fall_asleep(&node, 0);
        look(&node, 2, HVD_MAIL_CONTROL);
        is_told =
            !waited || (was_woken(&node, 0) && has_come(&node, 0, HVD_MAIL_CONTROL));
        look(&node, 0, HVD_MAIL_CONTROL);
        look(&node, 1, HVD_MAIL_CONTROL);
    }
    tap_ok(is_told, "a sender that waits for room is woken when there is some");
    tap_ok(!is_wrong(&node) && node.tally[1][0].got[0] == count &&
               node.tally[2][0].got[0] == count &&
               !hvd_mail_control_waits(node.rank[0].mail),
           "all control mail arrives in order");
    close_node(&node);
}

static void test_full_pair(unsigned seed)
{
    const uint32_t count = 200;
    struct node node;
    bool is_refused = false, is_told = true;

    open_node(&node, seed);
    for (uint32_t i = 0; i < count; i++) {
        is_refused |= mail_post(node.rank[2].mail, HVD_MAIL_P2P, seed, 2, 1, i) != 0;
    }
    tap_ok(!is_refused && hvd_mail_p2p_waits(node.rank[2].mail, 1) &&
               !hvd_mail_p2p_waits(node.rank[2].mail, 0) &&
               !has_come(&node, 2, HVD_MAIL_P2P),
           "messages wait for room, too");
    while (node.tally[1][1].got[2] < count && is_told) {
        bool waited = hvd_mail_p2p_waits(node.rank[2].mail, 1);

        fall_asleep(&node, 2);
        look(&node, 1, HVD_MAIL_P2P);
        look(&node, 1, HVD_MAIL_P2P);
        is_told = !waited || (was_woken(&node, 2) && has_come(&node, 2, HVD_MAIL_P2P));
        look(&node, 2, HVD_MAIL_P2P);
    }
    tap_ok(is_told && !is_wrong(&node) && node.tally[1][1].got[2] == count,
           "waiting messages are written when there is room");
    close_node(&node);
}

/* Sends and reads in random order, so that mail begins and ends at every place of the
 * rings. */
static void test_random_order(unsigned seed)
{
    struct node node;
    uint32_t sent[RANKS] = {0}, posted[RANKS][RANKS] = {{0}};
    bool is_refused = false, has_all = true;

    srand(seed);
    open_node(&node, seed);
    for (int i = 0; i < 20000; i++) {
        int rank = rand() % RANKS, to = (rank + 1 + rand() % (RANKS - 1)) % RANKS;
        struct hvd_mail *mail = node.rank[rank].mail;

        switch (rand() % 4) {
        case 0:
            is_refused |=
                mail_post(mail, HVD_MAIL_CONTROL, seed, rank, to, sent[rank]++) != 0;
            break;
        case 1:
            is_refused |=
                mail_post(mail, HVD_MAIL_P2P, seed, rank, to, posted[rank][to]++) != 0;
            break;
        default:
            look(&node, rank, (enum hvd_mail_kind)(rand() % KINDS));
        }
    }
    for (int i = 0; i < 100000; i++) {
        look(&node, i % RANKS, (enum hvd_mail_kind)(i / RANKS % KINDS));
    }
    for (int from = 0; from < RANKS; from++) {
        for (int to = 0; to < RANKS; to++) {
            has_all &= node.tally[to][1].got[from] == posted[from][to];
            has_all &=
                (from == 0) == (to == 0) || node.tally[to][0].got[from] == sent[from];
        }
    }
    tap_ok(!is_refused && !is_wrong(&node) && has_all,
           "no mail is lost or changed in 20000 random steps");
    close_node(&node);
}

/* --- odd sizes --- */

struct largest {
    size_t bytes;
    int count;
    bool is_right;
};

static int check_largest(void *context, int from, uint32_t type, const void *payload,
                         size_t bytes)
{
    struct largest *largest = context;
    const char *text = payload;

    largest->count++;
    largest->is_right = from == 0 && type == 7 && bytes == largest->bytes &&
                        text[0] == 'a' && text[bytes / 2] == 'm' &&
                        text[bytes - 1] == 'z';
    return 0;
}

static void test_largest(void)
{
    struct largest largest[RANKS] = {{0}};
    char *payload = calloc(1, HVD_RING_MAX_MESSAGE);
    struct node node;

    open_node(&node, 1);
    payload[0] = 'a';
    payload[HVD_RING_MAX_MESSAGE / 2] = 'm';
    payload[HVD_RING_MAX_MESSAGE - 1] = 'z';
    hvd_mail_send_control(node.rank[0].mail, 7, payload, HVD_RING_MAX_MESSAGE, NULL);
    free(payload);
    for (int i = 0; i < 100000 && largest[1].count == 0; i++) {
        for (int rank = 0; rank < RANKS; rank++) {
            largest[rank].bytes = HVD_RING_MAX_MESSAGE;
            hvd_mail_progress(node.rank[rank].mail, HVD_MAIL_CONTROL, check_largest,
                              &largest[rank], NULL);
        }
    }
    tap_ok(largest[1].count == 1 && largest[1].is_right, "mail of 64 MiB arrives");
    close_node(&node);
}

struct echo {
    struct hvd_mail *mail; /* NULL if the rank only listens */
    uint32_t heard;
};

static int answer(void *context, int from, uint32_t type, const void *payload,
                  size_t bytes)
{
    struct echo *echo = context;

    (void)from;
    echo->heard++;
    if (echo->mail != NULL) {
        hvd_mail_send_control(echo->mail, type + 1, payload, bytes, NULL);
    }
    return 0;
}

/* Local rank 1 and the leader answer each other; local rank 2 only listens. */
static void test_answer(void)
{
    const uint32_t rounds = 5000;
    struct echo echoes[RANKS] = {{0}};
    struct node node;

    open_node(&node, 1);
    echoes[0].mail = node.rank[0].mail;
    echoes[1].mail = node.rank[1].mail;
    hvd_mail_send_control(node.rank[1].mail, 0, "", 0, NULL);
    for (uint32_t i = 0; i < rounds; i++) {
        for (int rank = 0; rank < RANKS; rank++) {
            hvd_mail_progress(node.rank[rank].mail, HVD_MAIL_CONTROL, answer,
                              &echoes[rank], NULL);
        }
    }
    tap_ok(echoes[0].heard == rounds && echoes[1].heard == rounds &&
               echoes[2].heard == rounds,
           "a handler may send mail");
    close_node(&node);
}

static void test_alone(void)
{
    struct mail_node node;
    struct mail_rank rank;

    mail_open_node(&node, 1);
    mail_open_rank(&node, 0, NULL, &rank);
    tap_ok(hvd_mail_send_control(rank.mail, 1, "text", 4, NULL) == 0 &&
               !hvd_mail_control_waits(rank.mail) &&
               !hvd_mail_has_come(rank.mail, HVD_MAIL_CONTROL),
           "a rank that is alone on its node sends to no other rank");
    mail_close_rank(&rank);
    mail_close_node(&node);
    hvd_mail_destroy(NULL);
}

/* --- damage --- */

/* Local rank 2 sends mail to rank `to` and then overwrites all memory that the node
 * shares with random bytes. */
static int look_at_damage(enum hvd_mail_kind kind, int to, bool *is_final,
                          struct hvd_error *err)
{
    const size_t bytes = hvd_mail_extra_bytes(RANKS);
    struct node node;
    struct letter ignored = {0};
    char *memory, *pair;
    int status = 0;

    open_node(&node, 1);
    hvd_mail_send_control(node.rank[2].mail, 5, "hello", 5, NULL);
    hvd_mail_send_p2p(node.rank[2].mail, to, "hello", 5, NULL);
    memory = hvd_shm_extra(node.rank[2].shm);
    hvd_shm_map_reserved(node.rank[2].shm, 0, hvd_mail_reserved_bytes(RANKS), &pair, err);
    for (size_t i = 0; i < bytes; i++) {
        memory[i] = (char)(i < BOARDS ? 255 : rand());
    }
    for (size_t i = 0; i < hvd_mail_reserved_bytes(RANKS); i++) {
        pair[i] = (char)rand();
    }
    for (int i = 0; i < 10 && status >= 0; i++) {
        status = hvd_mail_progress(node.rank[to].mail, kind, check_letter, &ignored, err);
    }
    *is_final =
        !has_come(&node, to, kind) &&
        hvd_mail_progress(node.rank[to].mail, kind, check_letter, &ignored, NULL) == 0;
    close_node(&node);
    return status;
}

static void test_damage(void)
{
    const char *const names[] = {"control", "message"};

    for (int kind = 0; kind < KINDS; kind++) {
        for (int to = 0; to < 2; to++) {
            struct hvd_error err = {0};
            bool is_final;
            int status = look_at_damage((enum hvd_mail_kind)kind, to, &is_final, &err);

            tap_ok(status == HVD_ERR_NET && is_final &&
                       strstr(err.text, "is damaged") != NULL,
                   "damaged %s mail of local rank %d is an error: %s", names[kind], to,
                   err.text);
        }
    }
}

static int fail_on_purpose(void *context, int from, uint32_t type, const void *payload,
                           size_t bytes)
{
    (void)context, (void)from, (void)type, (void)payload, (void)bytes;
    return HVD_ERR_PEER;
}

static void test_failing_handler(void)
{
    struct node node;

    open_node(&node, 1);
    hvd_mail_send_p2p(node.rank[0].mail, 1, "hello", 5, NULL);
    tap_ok(hvd_mail_progress(node.rank[1].mail, HVD_MAIL_P2P, fail_on_purpose, NULL,
                             NULL) == HVD_ERR_PEER,
           "an error of the handler is returned");
    close_node(&node);
}

/* --- memory --- */

static void test_memory(void)
{
    /* rings of control mail, 32 KiB for each rank */
    const size_t rings = (size_t)4 << 20;

    tap_ok(hvd_mail_extra_bytes(128) < rings + (rings >> 4),
           "the mail of 128 ranks takes %zu bytes before the first message",
           hvd_mail_extra_bytes(128));
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    test_control();
    test_message();
    test_full_control(seed);
    test_full_pair(seed);
    test_random_order(seed);
    test_largest();
    test_answer();
    test_alone();
    test_damage();
    test_failing_handler();
    test_memory();
    return tap_done();
}
