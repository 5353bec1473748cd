/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the program sees them. Prints TAP. */
#include "collectives/core/process_sets.h"

#include <string.h>

#include "collectives/set/sets.h"
#include "collectives/hvd.h"
#include "tests/tap.h"

enum {
    RANK = 2,
    MOST_SETS = 8
};

static struct hvd_process_sets sets;

/* Descriptions of sets, by number, of which the test stays an owner. */
static struct hvd_set_members described[MOST_SETS];

static const struct hvd_set_members *describe(int id, int *ranks, int count)
{
    struct hvd_set_members *set = &described[id];

    *set = (struct hvd_set_members){.id = id, .ranks = ranks, .count = count};
    hvd_refcount_init(&set->refcount, NULL);
    return set;
}

static void begin(void)
{
    static int all[] = {0, 1, 2, 3};

    memset(&sets, 0, sizeof(sets));
    hvd_process_sets_init(&sets);
    hvd_process_sets_open(&sets, RANK, describe(HVD_SET_GLOBAL, all, 4));
}

static void test_places(void)
{
    int ranks[] = {0, 2, 3};
    struct hvd_set_place place;
    int copy[3] = {0};

    begin();
    tap_ok(hvd_process_sets_add(&sets, describe(1, ranks, 3)) == 0 &&
               hvd_process_sets_find(&sets, 1, 3, &place) == 0 && place.rank == RANK &&
               place.size == 3 && place.index == 1 && place.root_index == 2,
           "a member knows its place, and a root's");
    tap_ok(hvd_process_sets_find(&sets, 1, 1, &place) == 0 && place.root_index == -1,
           "a root that is no member has none");
    tap_ok(hvd_process_sets_ranks(&sets, 1, copy) == 0 &&
               memcmp(copy, ranks, sizeof(ranks)) == 0,
           "the ranks are those that were added");
    tap_ok(hvd_process_sets_find(&sets, 2, 0, &place) == HVD_ERR_ARG &&
               hvd_process_sets_ranks(&sets, 2, copy) == HVD_ERR_ARG,
           "a set that was not added is not there");
    hvd_process_sets_finish(&sets);
}

static void test_ids(void)
{
    int rank = 0;
    int ids[3] = {0};

    begin();
    hvd_process_sets_add(&sets, describe(7, &rank, 1));
    hvd_process_sets_add(&sets, describe(3, &rank, 1));
    tap_ok(hvd_process_sets_ids(&sets, ids) == 3 && ids[0] == HVD_SET_GLOBAL &&
               ids[1] == 3 && ids[2] == 7,
           "sets are told in the order of their numbers");
    hvd_process_sets_remove(&sets, 3);
    hvd_process_sets_remove(&sets, 4);
    tap_ok(hvd_process_sets_ids(&sets, NULL) == 2 && described[3].refcount.owners == 1 &&
               described[7].refcount.owners == 2,
           "one that was removed is gone, and not kept");
    hvd_process_sets_finish(&sets);
}

static void test_numbers(void)
{
    int rank = RANK;

    begin();
    hvd_process_sets_add(&sets, describe(1, &rank, 1));
    hvd_process_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS);
    tap_ok(hvd_process_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS) == 1 &&
               hvd_process_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS) == 0 &&
               hvd_process_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_SET_CHANGES) ==
                   0,
           "each set counts each kind for itself");
    hvd_process_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS);
    hvd_process_sets_recount(&sets);
    tap_ok(hvd_process_sets_number(&sets, HVD_SET_GLOBAL, HVD_UNNAMED_BARRIERS) == 0 &&
               hvd_process_sets_number(&sets, 1, HVD_UNNAMED_BARRIERS) == 2,
           "after a join the global set counts from 0 again, and no other");
    hvd_process_sets_finish(&sets);
}

int main(void)
{
    test_places();
    test_ids();
    test_numbers();
    return tap_done();
}
