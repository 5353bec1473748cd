/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets as one node sees them, against a plain list. */
#include <stdlib.h>
#include <string.h>

#include "collectives/set/sets.h"
#include "tests/tap.h"

enum {
    RANKS = 40,
    MOST_SETS = 24,
    ROUNDS = 2000
};

struct plain {
    bool is_live;
    int ranks[RANKS];
    int count;
};

static int draw_ranks(int *ranks)
{
    int count = 0;

    for (int rank = 0; rank < RANKS; rank++) {
        if (rand() % 3 == 0 || (rank == RANKS - 1 && count == 0)) {
            ranks[count++] = rank;
        }
    }
    return count;
}

static int plain_index(const struct plain *set, int rank)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ranks[i] == rank) {
            return i;
        }
    }
    return -1;
}

static bool is_same(const struct hvd_membership *membership, const struct plain *plain)
{
    for (int id = 0; id < MOST_SETS; id++) {
        const struct hvd_set_members *set = hvd_membership_find(membership, id);

        if ((set != NULL) != plain[id].is_live) {
            return false;
        }
        for (int rank = -1; set != NULL && rank <= RANKS; rank++) {
            if (hvd_set_members_index(set, rank) != plain_index(&plain[id], rank)) {
                return false;
            }
        }
    }
    return hvd_membership_find(membership, -1) == NULL &&
           hvd_membership_find(membership, MOST_SETS + 1) == NULL;
}

static int lowest_free(const struct plain *plain)
{
    int id = 0;

    while (plain[id].is_live) {
        id++;
    }
    return id;
}

static bool play(struct hvd_membership *membership, struct plain *plain)
{
    bool good = true;

    for (int i = 0; i < ROUNDS && good; i++) {
        int id = 1 + rand() % (MOST_SETS - 1);

        if (plain[id].is_live) {
            hvd_membership_remove(membership, id);
            plain[id].is_live = false;
        } else {
            id = lowest_free(plain);
            plain[id].is_live = true;
            plain[id].count = draw_ranks(plain[id].ranks);
            good = hvd_membership_next(membership, 0) == id &&
                   hvd_membership_is_free(membership, id) &&
                   hvd_membership_add(membership, id, plain[id].ranks, plain[id].count,
                                      NULL) == 0 &&
                   !hvd_membership_is_free(membership, id);
        }
        good = good && is_same(membership, plain);
    }
    return good;
}

int main(void)
{
    unsigned seed = tap_seed(11);
    static struct plain plain[MOST_SETS + 1];
    const char *hosts[RANKS];
    struct hvd_membership membership;
    struct hvd_layout layout;

    srand(seed);
    for (int i = 0; i < RANKS; i++) {
        hosts[i] = i < RANKS / 2 ? "a" : "b";
        plain[0].ranks[i] = i;
    }
    plain[0].is_live = true;
    plain[0].count = RANKS;
    hvd_layout_init(&layout, hosts, RANKS, NULL);
    tap_ok(hvd_membership_init(&membership, &layout, 0, NULL) == 0,
           "the global set is there");
    tap_ok(play(&membership, plain),
           "sets that come and go are found by their numbers, and ranks in them");
    hvd_membership_finish(&membership);
    hvd_layout_finish(&layout);
    return tap_done();
}
