/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's table of the sets that members create: when a set is created, and which ranks
 * are told that it is not. */
#include "collectives/agreement/set_creations.h"

#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    RANKS = 8
};

static struct hvd_layout layout;
static struct hvd_sets sets;
static struct hvd_set_creations creations;
static struct hvd_decision_writers writers;

/* Lets a rank ask for the creation of a set with this name and this list of members. */
static int ask(int rank, const char *name, const char *list)
{
    const struct hvd_set_wish wish = {.rank = rank, .name = name, .list = list};

    return hvd_set_creations_add(&creations, &wish, &writers);
}

/* Returns all decisions since the last call, each with its number, name and ranks:
 * "1:a:0-3" creates set 1 of ranks 0 to 3; "-6:a:0,1" tells ranks 0 and 1 of the error
 * -6. */
static const char *decided(void)
{
    static char text[1024];
    struct hvd_reader reader = {.data = writers.sets.data, .bytes = writers.sets.bytes};
    size_t used = 0;

    text[0] = '\0';
    while (reader.bytes > 0) {
        struct hvd_record part, record;
        struct hvd_set_outcome outcome;

        if (hvd_take_record(&reader, &part) != 0 || part.kind != HVD_DECISION_SET ||
            hvd_take_record(&reader, &record) != 0 ||
            record.kind != HVD_DECISION_CREATE ||
            hvd_take_set_outcome(&reader, &outcome) != 0) {
            return "no decision";
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d:%s:%s",
                                 used > 0 ? " " : "",
                                 outcome.status != 0 ? outcome.status : (int)part.id,
                                 outcome.name, outcome.list);
    }
    writers.sets.bytes = 0;
    return text;
}

static void check(const char *wanted, const char *promise)
{
    const char *text = decided();

    if (!tap_ok(strcmp(text, wanted) == 0, "%s", promise)) {
        tap_note("'%s', not '%s'", text, wanted);
    }
}

static void begin(void)
{
    sets = (struct hvd_sets){0};
    hvd_sets_init(&sets, &layout, 0, NULL);
    creations = (struct hvd_set_creations){.sets = &sets};
    writers.last_set = 0;
}

static void finish(void)
{
    tap_ok(creations.by_name.count == 0, "the table is empty");
    hvd_set_creations_finish(&creations);
    hvd_sets_finish(&sets);
}

static void test_members(void)
{
    begin();
    ask(3, "a", "1-3");
    ask(1, "a", "1-3");
    tap_ok(hvd_set_creations_lack(&creations, "a", 2) &&
               !hvd_set_creations_lack(&creations, "a", 3) &&
               !hvd_set_creations_lack(&creations, "a", 4) &&
               !hvd_set_creations_lack(&creations, "b", 2),
           "a set waits for the members that have not asked");
    check("", "no set is created before all members have asked");
    ask(2, "a", "1-3");
    ask(5, "a", "5");
    check(
        "1:a:1-3 2:a:5",
        "a set is created when all have asked; other sets of its name get other numbers");
    finish();
}

static void test_mismatch(void)
{
    char low[16], both[64];

    snprintf(low, sizeof(low), "%d:", HVD_ERR_MISMATCH);
    begin();
    ask(0, "a", "0-2");
    ask(4, "a", "4,5");
    check("", "lists that do not overlap do not conflict");
    ask(1, "a", "1-3");
    snprintf(both, sizeof(both), "%sa:0 %sa:1", low, low);
    check(both, "lists that overlap and differ fail");
    ask(2, "a", "1,2");
    snprintf(both, sizeof(both), "%sa:2", low);
    check(both, "a rank of a list that failed fails, too, whatever it asks for");
    ask(0, "a", "0-2");
    check("", "a rank that has been told may ask again");
    ask(3, "a", "1-3");
    snprintf(both, sizeof(both), "%sa:3", low);
    check(both, "the last rank of a list that failed is told, too");
    ask(1, "a", "0-2");
    ask(2, "a", "0-2");
    ask(5, "a", "4,5");
    check("1:a:0-2 2:a:4,5",
          "when all ranks have been told, they and others may use the name");
    finish();
}

static void test_labels(void)
{
    static const int ranks[] = {1, 2};
    char both[64];

    begin();
    hvd_sets_add(&sets, 1, ranks, 2, "a");
    ask(2, "a", "2,3");
    snprintf(both, sizeof(both), "%d:a:2", HVD_ERR_ARG);
    check(both, "a name is refused while a set with one of the ranks has it");
    ask(4, "a", "4");
    ask(1, "b", "1,2");
    ask(2, "b", "1,2");
    check("2:a:4 3:b:1,2", "other ranks may use the name, and these ranks another name");
    hvd_sets_remove(&sets, hvd_sets_find(&sets, 1));
    ask(2, "a", "2,3");
    ask(3, "a", "2,3");
    check("4:a:2,3", "when the set is removed, the name is free");
    finish();
}

static void test_garbage(void)
{
    begin();
    tap_ok(ask(0, "a", "0,9") == HVD_ERR_NET && ask(0, "a", "1,0") == HVD_ERR_NET &&
               ask(0, "a", "") == HVD_ERR_NET,
           "malformed lists are refused");
    tap_ok(ask(4, "a", "0-3") == HVD_ERR_NET,
           "a list without the rank that asks is refused");
    ask(0, "b", "0,1");
    tap_ok(ask(0, "b", "0,1") == HVD_ERR_NET,
           "a second request of the same rank is refused");
    check("", "refused requests have no effect");
    ask(1, "b", "0,1");
    check("1:b:0,1", "valid requests after refused ones succeed");
    finish();
}

int main(void)
{
    static const char *const hosts[RANKS] = {"a", "a", "a", "a", "b", "b", "b", "b"};

    hvd_layout_init(&layout, hosts, RANKS, NULL);
    test_members();
    test_mismatch();
    test_labels();
    test_garbage();
    hvd_writer_finish(&writers.sets);
    hvd_layout_finish(&layout);
    return tap_done();
}
