/* SPDX-License-Identifier: Apache-2.0 */
/* Which message is matched with which receive: for messages and receives in random order,
 * compares the hash table of matching.h with a plain list. */
#include "collectives/p2p/matching.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    ITEMS = 4000,
    RANKS = 3,
    TAGS = 5,
    SETS = 2,
};

struct list {
    struct hvd_matching_item *items[ITEMS];
    int count;
};

static struct hvd_matching table;

static bool fits(const struct hvd_matching_item *a, const struct hvd_matching_item *b)
{
    return a->set == b->set && a->tag == b->tag &&
           (a->rank == b->rank || a->rank < 0 || b->rank < 0);
}

static struct hvd_matching_item *take_from_list(struct list *list,
                                                const struct hvd_matching_item *key)
{
    for (int i = 0; i < list->count; i++) {
        struct hvd_matching_item *item = list->items[i];

        if (fits(item, key)) {
            list->count--;
            memmove(&list->items[i], &list->items[i + 1],
                    (size_t)(list->count - i) * sizeof(item));
            return item;
        }
    }
    return NULL;
}

static struct hvd_matching_item random_item(bool may_be_any)
{
    return (struct hvd_matching_item){
        .rank = rand() % (RANKS + 1) - (may_be_any ? 1 : 0),
        .set = rand() % SETS,
        .tag = (rand() % TAGS) * ((int64_t)1 << 40) - 7,
    };
}

/* Enters items of one kind (messages or receives) and takes them out with keys of the
 * other kind. */
static void test_random(bool holds_any, const char *what)
{
    static struct hvd_matching_item items[ITEMS];
    struct list list = {.count = 0};
    bool same = true;

    for (int i = 0; i < ITEMS; i++) {
        const struct hvd_matching_item key = random_item(!holds_any);

        items[i] = random_item(holds_any);
        hvd_matching_enter(&table, &items[i]);
        list.items[list.count++] = &items[i];
        if (rand() % 2 == 0) {
            same = same && hvd_matching_take(&table, &key) == take_from_list(&list, &key);
        }
        same = same && table.count == (size_t)list.count;
    }
    while (list.count > 0) {
        const struct hvd_matching_item key = *list.items[rand() % list.count];

        same = same && hvd_matching_take(&table, &key) == take_from_list(&list, &key);
    }
    tap_ok(same && table.count == 0 && hvd_matching_take_any(&table) == NULL,
           "%s: the oldest that matches is taken", what);
}

/* Enters so many items that several share a bucket of the table. They differ in their
 * sets, or in their tags. */
static void test_others(int sets, const char *what)
{
    static struct hvd_matching_item items[ITEMS];
    bool ok = true;

    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct hvd_matching_item){
            .rank = i % 2, .set = i / 2 % sets, .tag = i / 2 / sets};
        hvd_matching_enter(&table, &items[i]);
    }
    for (int i = ITEMS - 1; i >= 0; i--) {
        const struct hvd_matching_item key = items[i];

        ok = ok && hvd_matching_take(&table, &key) == &items[i];
    }
    tap_ok(ok, "an item of another rank or %s is never taken", what);
}

static void test_take_any(void)
{
    struct hvd_matching_item items[3] = {{.tag = 1}, {.tag = 1}, {.tag = 1 << 20}};
    int taken = 0;

    for (int i = 0; i < 3; i++) {
        hvd_matching_enter(&table, &items[i]);
    }
    while (hvd_matching_take_any(&table) != NULL) {
        taken++;
    }
    tap_ok(taken == 3 && table.count == 0, "hvd_matching_take_any takes all items");
    hvd_matching_enter(&table, &items[0]);
    tap_ok(hvd_matching_take(&table, &items[0]) == &items[0],
           "an emptied table can be used again");
}

int main(void)
{
    srand(tap_seed(1));
    test_random(false, "messages that receives take");
    test_random(true, "receives, some from any rank, that messages take");
    test_others(256, "set");
    test_others(1, "tag");
    test_take_any();
    return tap_done();
}
