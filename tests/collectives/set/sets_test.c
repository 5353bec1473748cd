/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets that one rank knows: compares the table with a plain list, and checks
 * the answers that the program gets about its sets. */
#include "collectives/set/sets.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/request/descriptor.h"
#include "tests/tap.h"

enum {
    RANKS = 40,
    RANK = 2, /* a leaf of the control tree */
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

static bool is_same(const struct hvd_sets *sets, const struct plain *plain)
{
    for (int id = 0; id < MOST_SETS; id++) {
        const struct hvd_set *set = hvd_sets_find(sets, id);

        if ((set != NULL) != plain[id].is_live) {
            return false;
        }
        for (int rank = -1; set != NULL && rank <= RANKS; rank++) {
            if (hvd_set_index(set, rank) != plain_index(&plain[id], rank)) {
                return false;
            }
        }
    }
    return hvd_sets_find(sets, -1) == NULL && hvd_sets_find(sets, MOST_SETS + 1) == NULL;
}

static int lowest_free(const struct plain *plain)
{
    int id = 0;

    while (plain[id].is_live) {
        id++;
    }
    return id;
}

static bool play(struct hvd_sets *sets, struct plain *plain)
{
    bool good = true;

    for (int i = 0; i < ROUNDS && good; i++) {
        int id = 1 + rand() % (MOST_SETS - 1);

        if (plain[id].is_live) {
            hvd_sets_remove(sets, hvd_sets_find(sets, id));
            plain[id].is_live = false;
        } else {
            id = lowest_free(plain);
            plain[id].is_live = true;
            plain[id].count = draw_ranks(plain[id].ranks);
            good =
                hvd_sets_next(sets, 0) == id && hvd_sets_is_free(sets, id) &&
                hvd_sets_add(sets, id, plain[id].ranks, plain[id].count, NULL) != NULL &&
                !hvd_sets_is_free(sets, id);
        }
        good = good && is_same(sets, plain);
    }
    return good;
}

static void test_table(const struct hvd_layout *layout)
{
    static struct plain plain[MOST_SETS + 1];
    struct hvd_sets sets;

    for (int i = 0; i < RANKS; i++) {
        plain[0].ranks[i] = i;
    }
    plain[0].is_live = true;
    plain[0].count = RANKS;
    tap_ok(hvd_sets_init(&sets, layout, 0, NULL) == 0 &&
               sets.global == hvd_sets_find(&sets, HVD_SET_GLOBAL),
           "the global set exists from the start");
    tap_ok(play(&sets, plain),
           "sets are found by their numbers, and ranks in them, as sets come and go");
    hvd_sets_finish(&sets);
}

static void test_joins(const struct hvd_layout *layout)
{
    static const int both[] = {RANK, RANKS - 1};
    struct hvd_sets sets;
    const struct hvd_set *set;

    hvd_sets_init(&sets, layout, RANK, NULL);
    set = hvd_sets_add(&sets, 1, both, 2, NULL);
    hvd_sets_join(&sets, RANK);
    tap_ok(!hvd_sets_needs(&sets, sets.global, 0) &&
               !hvd_sets_needs_rank(&sets, sets.global, RANK) &&
               hvd_sets_first_in_branch(&sets, sets.global, 0) == -1,
           "tensors of the global set do not wait for a rank that has joined");
    tap_ok(hvd_sets_needs(&sets, set, 0) && hvd_sets_needs_rank(&sets, set, RANK) &&
               hvd_sets_first_in_branch(&sets, set, 0) == RANK &&
               !hvd_sets_needs_rank(&sets, set, 0),
           "tensors of another set wait for all of its members, and for no other rank");
    hvd_sets_join_over(&sets);
    tap_ok(hvd_sets_needs(&sets, sets.global, 0),
           "tensors of the global set wait again after all ranks have joined");
    hvd_sets_finish(&sets);
}

/* Whether the set refuses a tensor of this kind; call: the number of its call, or 0. */
static bool refuses(const struct hvd_sets *sets, const struct hvd_set *set,
                    enum hvd_kind kind, uint64_t call)
{
    const struct hvd_descriptor descriptor = {.set = set->id, .kind = kind, .call = call};

    return hvd_sets_refuse(sets, &descriptor);
}

static void test_aborts(const struct hvd_layout *layout)
{
    static const int both[] = {RANK, RANKS - 1};
    struct hvd_sets sets;
    struct hvd_set *set;

    hvd_sets_init(&sets, layout, RANK, NULL);
    set = hvd_sets_add(&sets, 1, both, 2, NULL);
    hvd_sets_begin_abort(&sets, set, HVD_ERR_ABORTED, "for a test");
    tap_ok(!refuses(&sets, set, HVD_KIND_ALLREDUCE, 0) &&
               hvd_sets_abort_reason(&sets, 1) == NULL,
           "a set works until its abort is decided");
    hvd_set_end_abort(set);
    tap_ok(refuses(&sets, set, HVD_KIND_ALLREDUCE, 0) &&
               !refuses(&sets, set, HVD_KIND_SET_REMOVE, 0) &&
               !refuses(&sets, set, HVD_KIND_SET_ABORT, 0) &&
               !refuses(&sets, sets.global, HVD_KIND_ALLREDUCE, 0) &&
               strcmp(hvd_sets_abort_reason(&sets, 1), "for a test") == 0,
           "an aborted set refuses everything but its removal, with the reason");
    hvd_sets_remove(&sets, set);
    set = hvd_sets_add(&sets, 1, both, 2, NULL);
    tap_ok(!refuses(&sets, set, HVD_KIND_ALLREDUCE, 0) && sets.aborted == 0,
           "a later set with the same number is not aborted");
    hvd_sets_begin_abort(&sets, sets.global, HVD_ERR_MISMATCH, "calls differ");
    hvd_set_end_abort(sets.global);
    tap_ok(refuses(&sets, sets.global, HVD_KIND_ALLREDUCE, 1) &&
               !refuses(&sets, sets.global, HVD_KIND_ALLREDUCE, 0) &&
               hvd_sets_abort_reason(&sets, HVD_SET_GLOBAL) == NULL,
           "the aborted global set refuses numbered calls only");
    hvd_sets_finish(&sets);
}

static void test_places(const struct hvd_layout *layout)
{
    static const int ranks[] = {0, RANK, RANK + 1};
    struct hvd_set_position place;
    struct hvd_sets sets;
    int copy[3] = {0};

    hvd_sets_init(&sets, layout, RANK, NULL);
    hvd_sets_add(&sets, 1, ranks, 3, NULL);
    tap_ok(hvd_sets_position(&sets, 1, RANK + 1, &place) == 0 && place.rank == RANK &&
               place.size == 3 && place.index == 1 && place.root_index == 2,
           "a member knows its index, and the root's");
    tap_ok(hvd_sets_position(&sets, 1, 1, &place) == 0 && place.root_index == -1,
           "a root that is no member has no index");
    tap_ok(hvd_sets_ranks(&sets, 1, copy) == 0 && memcmp(copy, ranks, sizeof(ranks)) == 0,
           "the ranks of a set are those that were added");
    tap_ok(hvd_sets_position(&sets, 2, 0, &place) == HVD_ERR_ARG &&
               hvd_sets_ranks(&sets, 2, copy) == HVD_ERR_ARG,
           "a set that was not added is not found");
    hvd_sets_finish(&sets);
}

static void test_ids(const struct hvd_layout *layout)
{
    static const int other = 0, own = RANK;
    struct hvd_sets sets;
    struct hvd_set_position place;
    int ids[4] = {0};

    hvd_sets_init(&sets, layout, RANK, NULL);
    hvd_sets_add(&sets, 7, &other, 1, NULL);
    hvd_sets_add(&sets, 3, &own, 1, "mine");
    hvd_sets_add(&sets, 5, &other, 1, "theirs");
    tap_ok(hvd_sets_ids(&sets, ids) == 3 && ids[0] == HVD_SET_GLOBAL && ids[1] == 3 &&
               ids[2] == 7,
           "sets are listed in the order of their numbers");
    tap_ok(hvd_sets_position(&sets, 5, -1, &place) == HVD_ERR_ARG &&
               hvd_sets_position(&sets, 3, -1, &place) == 0 && place.is_created &&
               hvd_sets_number(&sets, 5, HVD_UNNAMED_BARRIERS) == 0,
           "sets that other ranks have created alone are not listed");
    hvd_sets_remove(&sets, hvd_sets_find(&sets, 3));
    tap_ok(hvd_sets_ids(&sets, NULL) == 2, "a removed set is not listed");
    hvd_sets_finish(&sets);
}

static void test_numbers(const struct hvd_layout *layout)
{
    static const int rank = RANK;
    struct hvd_sets sets;

    hvd_sets_init(&sets, layout, RANK, NULL);
    hvd_sets_add(&sets, 1, &rank, 1, NULL);
    hvd_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS);
    tap_ok(hvd_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS) == 1 &&
               hvd_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS) == 0 &&
               hvd_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_SET_CHANGES) == 0,
           "each set counts each kind of request separately");
    hvd_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS);
    hvd_sets_recount(&sets);
    tap_ok(hvd_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS) == 0 &&
               hvd_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS) == 2,
           "after a join the global set counts from 0 again, and no other set does");
    hvd_sets_finish(&sets);
}

int main(void)
{
    unsigned seed = tap_seed(11);
    const char *hosts[RANKS];
    struct hvd_layout layout;

    srand(seed);
    for (int i = 0; i < RANKS; i++) {
        hosts[i] = i < RANKS / 2 ? "a" : "b";
    }
    hvd_layout_init(&layout, hosts, RANKS, NULL);
    test_table(&layout);
    test_joins(&layout);
    test_aborts(&layout);
    test_places(&layout);
    test_ids(&layout);
    test_numbers(&layout);
    hvd_layout_finish(&layout);
    return tap_done();
}
