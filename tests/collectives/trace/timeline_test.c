/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of one rank, for tensors whose events come in any order. */
#include "collectives/trace/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "tests/collectives/trace/timeline_case.h"
#include "tests/tap.h"

static struct timeline_case test;

static bool row_says(const char *text, int row, const char *expected)
{
    char *found = case_phases(text, row);
    bool is_good = strcmp(found, expected) == 0;

    if (!is_good) {
        tap_note("row %d: %s", row, found);
    }
    free(found);
    return is_good;
}

static bool is_nested(const char *text, int row)
{
    char *found = case_phases(text, row);
    bool is_good = found[0] != '\0';

    free(found);
    return is_good;
}

static void phases_are_horovods(void)
{
    struct hvd_entry *gradient = case_entry(
        &test, 0, "DistributedOptimizer.\"a\\b\"/\xc3\xa4", HVD_KIND_ALLREDUCE);
    struct hvd_entry *gathered = case_entry(&test, 1, "gathered", HVD_KIND_ALLGATHER);
    char *text;

    gathered->result_rows = 12;
    case_begin(&test, true);
    hvd_timeline_cycle(test.timeline);
    case_run(&test, gradient, false);
    case_run(&test, gathered, true);
    text = case_text(&test);
    tap_ok(row_says(text, 1,
                    "+NEGOTIATE_ALLREDUCE 0 1 2 3 - +ALLREDUCE +QUEUE - "
                    "+SHM_ALLREDUCE - -"),
           "an allreduce within a node: negotiated, queued, run over shared memory");
    tap_ok(row_says(text, 2,
                    "+NEGOTIATE_ALLGATHER 0 1 2 3 - +ALLGATHER +QUEUE - "
                    "+NET_ALLGATHER - -"),
           "an allgather between nodes runs over the network");
    tap_ok(strstr(text, "\"name\": \"DistributedOptimizer.\\\"a\\\\b\\\"/\xc3\xa4\"") !=
               NULL,
           "the row has the tensor's name");
    tap_ok(strstr(text, "{\"dtype\": \"float32\", \"shape\": \"[3, 4]\"}") != NULL &&
               strstr(text, "{\"dtype\": \"float32\", \"shape\": \"[12, 4]\"}") != NULL,
           "the end shows dtype and shape, for an allgather those of the output");
    tap_ok(strstr(text, "CYCLE_START") != NULL &&
               strstr(text, "start_time_since_epoch_in_micros") != NULL,
           "cycles are marked if wanted; the beginning has a date");
    free(text);
}

static void early_ranks_wait(void)
{
    struct hvd_entry *entry = case_entry(&test, 0, "a", HVD_KIND_ALLREDUCE);
    char *text;

    case_begin(&test, false);
    hvd_timeline_cycle(test.timeline);
    hvd_timeline_ready(test.timeline, &entry->descriptor, 2);
    hvd_timeline_proposed(test.timeline, entry);
    case_agree(&test, entry);
    /* rank 3 is ready for the next step */
    hvd_timeline_ready(test.timeline, &entry->descriptor, 3);
    case_start(&test, entry, false);
    hvd_timeline_ready(test.timeline, &entry->descriptor, 1);
    hvd_timeline_ended(test.timeline, entry, 0);
    hvd_timeline_proposed(test.timeline, entry);
    case_agree(&test, entry);
    hvd_timeline_ended(test.timeline, entry, 0);
    text = case_text(&test);
    tap_ok(row_says(text, 1,
                    "+NEGOTIATE_ALLREDUCE 2 0 - +ALLREDUCE +QUEUE - +SHM_ALLREDUCE - - "
                    "+NEGOTIATE_ALLREDUCE 3 1 0 - +ALLREDUCE +QUEUE - -"),
           "a rank that submits the tensor of the next step early is marked in the next "
           "step");
    tap_ok(strstr(text, "CYCLE_START") == NULL, "cycles are not marked if not wanted");
    free(text);
}

static void failures_are_shown(void)
{
    struct hvd_entry *entry = case_entry(&test, 0, "a", HVD_KIND_BROADCAST);
    char *text;

    case_begin(&test, false);
    case_agree(&test, entry); /* submitted before the timeline began */
    case_start(&test, entry, false);
    hvd_timeline_ended(test.timeline, entry, 0);
    hvd_timeline_proposed(test.timeline, entry);
    hvd_timeline_ended(test.timeline, entry, HVD_ERR_MISMATCH);
    case_run(&test, entry, false);
    hvd_timeline_proposed(test.timeline, case_entry(&test, 1, "b", HVD_KIND_ALLREDUCE));
    hvd_timeline_proposed(test.timeline, case_entry(&test, 2, "c", HVD_KIND_ALLREDUCE));
    case_agree(&test, &test.request->entries[2]);
    text = case_text(&test);
    tap_ok(row_says(text, 1,
                    "+NEGOTIATE_BROADCAST 0 - +ERROR - +NEGOTIATE_BROADCAST 0 1 2 3 - "
                    "+BROADCAST +QUEUE - +SHM_BCAST - -"),
           "a tensor that fails is an ERROR; one that began before the timeline is left "
           "out");
    tap_ok(row_says(text, 2, "+NEGOTIATE_ALLREDUCE 0 -") &&
               row_says(text, 3, "+NEGOTIATE_ALLREDUCE 0 - +ALLREDUCE +QUEUE - -"),
           "activities that have begun are ended at the end");
    free(text);
}

static void sets_have_their_rows(void)
{
    struct hvd_entry *one = case_entry(&test, 0, "a", HVD_KIND_ALLREDUCE);
    struct hvd_entry *other = case_entry(&test, 1, "a", HVD_KIND_ALLTOALL);
    char *text;

    other->descriptor.set = 7;
    case_begin(&test, false);
    hvd_timeline_proposed(test.timeline, one);
    case_run(&test, other, false);
    case_run(&test, one, false);
    text = case_text(&test);
    tap_ok(
        row_says(text, 2,
                 "+NEGOTIATE_ALLTOALL 0 1 2 3 - +ALLTOALL +QUEUE - +SHM_ALLTOALL - -") &&
            strstr(text, "\"a (process set 7)\"") != NULL,
        "the same name in two process sets has two rows");
    free(text);
}

static void what_does_not_run(void)
{
    struct hvd_entry *join = case_entry(&test, 0, "join", HVD_KIND_JOIN);
    struct hvd_entry *set = case_entry(&test, 1, "set", HVD_KIND_SET_ADD);
    struct hvd_entry *absent = case_entry(&test, 2, "absent", HVD_KIND_ALLREDUCE);
    char *text;

    case_begin(&test, false);
    hvd_timeline_proposed(test.timeline, join);
    hvd_timeline_proposed(test.timeline, set);
    hvd_timeline_ready(test.timeline, &absent->descriptor, 1);
    absent->is_zeros = true;
    case_agree(&test, absent);
    case_start(&test, absent, false);
    hvd_timeline_ended(test.timeline, join, 0);
    hvd_timeline_ended(test.timeline, set, 0);
    absent->is_zeros = false;
    text = case_text(&test);
    tap_ok(row_says(text, 1, "+NEGOTIATE_JOIN 0 - +JOIN -"),
           "a join is negotiated, and has no other activities");
    tap_ok(row_says(text, 2, "+NEGOTIATE_ALLREDUCE 1 -") && strstr(text, "set") == NULL,
           "changes of process sets are not shown, nor zeros of a joined rank");
    free(text);
}

static void planned_batches_are_cycles(void)
{
    struct hvd_entry *entry = case_entry(&test, 0, "a", HVD_KIND_ALLREDUCE);
    const struct hvd_batch batch = {
        .header = {.count = 1}, .entries = &entry, .number = 1};
    char *text;

    case_begin(&test, true);
    hvd_timeline_proposed(test.timeline, entry);
    hvd_timeline_agreed(test.timeline, &batch);
    text = case_text(&test);
    tap_ok(strstr(text, "CYCLE_START") != NULL, "a replayed batch counts as a cycle");
    free(text);
}

static struct hvd_entry *message_entry(int i, enum hvd_kind kind, int other)
{
    struct hvd_entry *entry = case_entry(&test, i, "", kind);

    entry->descriptor.root = other;
    entry->output_bytes = 48;
    return entry;
}

static void messages_have_their_rows(void)
{
    struct hvd_entry *sent = message_entry(0, HVD_KIND_SEND, 1);
    struct hvd_entry *next = message_entry(1, HVD_KIND_SEND, 1);
    struct hvd_entry *received = message_entry(2, HVD_KIND_RECEIVE, HVD_ANY_SOURCE);
    char *text;

    test.request->tag = 5;
    test.request->value = 3;
    hvd_timeline_p2p_ended(NULL, sent, 0);
    case_begin(&test, false);
    /* this message had started before the timeline began */
    hvd_timeline_p2p_ended(test.timeline, next, 0);
    hvd_timeline_p2p_started(test.timeline, sent);
    hvd_timeline_p2p_started(test.timeline, next);
    hvd_timeline_p2p_started(test.timeline, received);
    hvd_timeline_p2p_ended(test.timeline, sent, 0);
    hvd_timeline_p2p_started(test.timeline, sent);
    hvd_timeline_p2p_ended(test.timeline, sent, HVD_ERR_PEER);
    hvd_timeline_p2p_ended(test.timeline, received, 0);
    text = case_text(&test);
    tap_ok(row_says(text, 1, "+SEND - +SEND - +ERROR -") &&
               row_says(text, 2, "+SEND -") && row_says(text, 3, "+RECEIVE -"),
           "messages in flight at the same time have rows of their own; one that fails "
           "is an ERROR");
    tap_ok(strstr(text, "\"send to 1\"") != NULL &&
               strstr(text, "\"send to 1 (2)\"") != NULL &&
               strstr(text, "\"receive from any rank\"") != NULL,
           "the rows are named after direction and rank");
    tap_ok(strstr(text, "{\"dtype\": \"float32\", \"bytes\": 48, \"tag\": 5, "
                        "\"rank\": 3}") != NULL,
           "the end shows size, tag and sender of a message");
    free(text);
}

static void tell_anything(struct hvd_entry *entry)
{
    switch (rand() % 6) {
    case 0:
        hvd_timeline_proposed(test.timeline, entry);
        break;
    case 1:
        hvd_timeline_ready(test.timeline, &entry->descriptor, rand() % CASE_RANKS);
        break;
    case 2:
        case_agree(&test, entry);
        break;
    case 3:
        case_start(&test, entry, rand() % 2 == 0);
        break;
    case 4:
        hvd_timeline_ended(test.timeline, entry, rand() % 4 == 0 ? HVD_ERR_MISMATCH : 0);
        break;
    default:
        hvd_timeline_cycle(test.timeline);
        break;
    }
}

static void random_orders_stay_nested(void)
{
    int bad = 0;
    char *text;

    case_begin(&test, true);
    for (int i = 0; i < CASE_ENTRIES; i++) {
        char name[32];

        snprintf(name, sizeof(name), "tensor %d", i);
        case_entry(&test, i, name, (enum hvd_kind)(i % 8));
    }
    srand(tap_seed(20260804));
    for (int i = 0; i < 20000; i++) {
        tell_anything(&test.request->entries[rand() % CASE_ENTRIES]);
    }
    text = case_text(&test);
    for (int row = 1; row <= CASE_ENTRIES; row++) {
        bad += is_nested(text, row) ? 0 : 1;
    }
    tap_ok(bad == 0, "rows stay nested whatever the order of events");
    free(text);
}

int main(void)
{
    case_init(&test);
    phases_are_horovods();
    early_ranks_wait();
    failures_are_shown();
    sets_have_their_rows();
    what_does_not_run();
    planned_batches_are_cycles();
    messages_have_their_rows();
    random_orders_stay_nested();
    case_finish(&test);
    return tap_done();
}
