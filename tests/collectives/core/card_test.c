/* SPDX-License-Identifier: Apache-2.0 */
/* The cards that ranks exchange when they start: each is read as it was written, and a
 * card that is too short is rejected, because it is from another version of hvd. */
#include "collectives/core/card.h"

#include <string.h>

#include "tests/tap.h"

enum {
    RANKS = 3
};

struct card {
    struct hvd_card_stamp stamp;
    char address[8];
};

static struct card cards[RANKS];
static struct hvd_boot_peer peers[RANKS];
static const struct hvd_boot boot = {.size = RANKS, .peers = peers};

static void set_up(void)
{
    static char hosts[RANKS][2] = {"a", "b", "c"};

    for (int i = 0; i < RANKS; i++) {
        cards[i] = (struct card){.stamp = {.algorithms = (uint64_t)i + 10,
                                           .memory_limit = 1000 * i,
                                           .pid = i}};
        snprintf(cards[i].address, sizeof(cards[i].address), "at %d", i);
        peers[i] = (struct hvd_boot_peer){
            .host = hosts[i], .card = &cards[i], .card_bytes = sizeof(cards[i])};
    }
}

static void test_cards(void)
{
    int wrong = 0;

    tap_ok(hvd_card_check(&boot, NULL) == 0,
           "cards with a stamp and an address are accepted");
    for (int i = 0; i < RANKS; i++) {
        struct hvd_card_stamp stamp = hvd_card_of(&peers[i]);
        size_t bytes = 0;
        const void *address = hvd_card_address(&peers[i], &bytes);

        wrong += stamp.algorithms != (uint64_t)i + 10 || stamp.memory_limit != 1000 * i ||
                 hvd_card_pid(&peers[i]) != i || bytes != sizeof(cards[i].address) ||
                 strcmp(address, cards[i].address) != 0;
    }
    tap_ok(wrong == 0, "each card is read as it was written");
}

static void test_other_version(int rank)
{
    struct hvd_error err = {0};
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "rank %d on %s has another version of hvd", rank,
             peers[rank].host);
    peers[rank].card_bytes = sizeof(struct hvd_card_stamp) - 1;
    tap_ok(hvd_card_check(&boot, &err) == HVD_ERR_MISMATCH &&
               strcmp(err.text, wanted) == 0,
           "%s", wanted);
    peers[rank].card_bytes = sizeof(cards[rank]);
}

int main(void)
{
    set_up();
    test_cards();
    for (int rank = 0; rank < RANKS; rank++) {
        test_other_version(rank);
    }
    return tap_done();
}
