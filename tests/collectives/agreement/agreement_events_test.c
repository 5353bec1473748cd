/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that an agreement queues events in order, and that each event waits until the
 * caller takes it. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/event_queue.h"
#include "collectives/agreement/tensor_table.h"
#include "collectives/request/batch.h"
#include "pmix_boot/boot.h"
#include "tests/tap.h"

/* --- two ranks on two nodes, or three ranks --- */

enum {
    MOST_RANKS = 3
};

struct rank {
    struct hvd_tensor_table tensors;
    struct hvd_sets sets;
    struct hvd_agreement *agreement;
    struct hvd_request *request; /* the last one */
    struct hvd_writer inbox; /* the last message of another rank */
    struct hvd_batch *batch; /* the batch to run */
    int heard; /* number of HEARD events of tensor "a" of rank 1 */
};

static struct hvd_layout layout;
static struct rank ranks[MOST_RANKS];
static int rank_count;

static void on_ended(void *context, struct hvd_entry *entry, int status, const char *text)
{
    (void)context;
    hvd_entry_end(entry, status, text);
}

static void begin_ranks(int count)
{
    static const char *const hosts[] = {"n0", "n1", "n1"};
    static struct hvd_boot_peer peers[] = {
        {.host = "n0"}, {.host = "n1"}, {.host = "n1"}};

    memset(ranks, 0, sizeof(ranks));
    rank_count = count;
    hvd_layout_init(&layout, hosts, count, NULL);
    for (int i = 0; i < count; i++) {
        const struct hvd_agreement_settings settings = {
            .tensors = &ranks[i].tensors,
            .sets = &ranks[i].sets,
            .peers = peers,
            .fusion = {.threshold = 1 << 20, .capacity = 16, .cycle_ns = 1},
        };

        hvd_tensor_table_init(&ranks[i].tensors, on_ended, NULL);
        hvd_sets_init(&ranks[i].sets, &layout, i, NULL);
        hvd_agreement_create(&settings, &ranks[i].agreement, NULL);
    }
}

static void begin(void)
{
    begin_ranks(2);
}

static void end(void)
{
    for (int i = 0; i < rank_count; i++) {
        hvd_agreement_drop(ranks[i].agreement, true, HVD_ERR_SHUTDOWN, "");
        hvd_batch_destroy(ranks[i].batch);
        hvd_agreement_destroy(ranks[i].agreement);
        hvd_sets_finish(&ranks[i].sets);
        hvd_tensor_table_finish(&ranks[i].tensors);
        hvd_request_drop(ranks[i].request);
        hvd_writer_finish(&ranks[i].inbox);
    }
    hvd_layout_finish(&layout);
}

/* Carries out an event; messages go to the neighbour's inbox. The tree is a chain: each
 * rank is the parent of the next one. */
static void carry_out(struct rank *rank, const struct hvd_agreement_event *event)
{
    if (event->kind == HVD_AGREEMENT_SEND_UP || event->kind == HVD_AGREEMENT_SEND_DOWN) {
        struct rank *other = event->kind == HVD_AGREEMENT_SEND_UP ? rank - 1 : rank + 1;

        other->inbox.bytes = 0;
        hvd_put(&other->inbox, event->data, event->bytes);
    } else if (event->kind == HVD_AGREEMENT_RUN) {
        rank->batch = event->batch;
    } else if (event->kind == HVD_AGREEMENT_HEARD) {
        rank->heard += event->heard.rank == 1 && strcmp(event->data, "a") == 0;
    }
}

static const struct hvd_agreement_event *next_event(struct rank *rank)
{
    int status = 0;

    return hvd_agreement_next(rank->agreement, &status);
}

static void drain(struct rank *rank)
{
    const struct hvd_agreement_event *event;

    while ((event = next_event(rank)) != NULL) {
        carry_out(rank, event);
    }
}

static void submit(struct rank *rank, const struct hvd_descriptor *descriptor)
{
    struct hvd_entry *entry;

    hvd_request_drop(rank->request);
    rank->request = hvd_request_create(1);
    entry = &rank->request->entries[0];
    entry->descriptor = *descriptor;
    entry->descriptor.name = strdup(descriptor->name);
    entry->descriptor.note = descriptor->note != NULL ? strdup(descriptor->note) : NULL;
    hvd_tensor_table_add(&rank->tensors, rank->request, NULL);
    hvd_agreement_submit(rank->agreement, entry, 1);
}

/* All ranks submit a tensor, and rank 0 decides on it; rank 0's events stay in the
 * queue. */
static void agree(const struct hvd_descriptor *descriptor)
{
    bool moved;

    for (int i = rank_count - 1; i >= 0; i--) {
        struct rank *rank = &ranks[i];

        submit(rank, descriptor);
        drain(rank);
        if (i < rank_count - 1) {
            hvd_agreement_from_below(rank->agreement, 1, rank->inbox.data,
                                     rank->inbox.bytes, 2);
            drain(rank);
        }
        hvd_agreement_progress(rank->agreement, true, 3, &moved);
        if (i > 0) {
            drain(rank);
        }
    }
}

static bool has_ended(const struct rank *rank)
{
    return atomic_load(&rank->request->status) != HVD_INPROGRESS;
}

static const struct hvd_descriptor tensor = {
    .kind = HVD_KIND_ALLREDUCE,
    .dtype = HVD_FLOAT32,
    .op = HVD_SUM,
    .device = HVD_DEVICE_CPU,
    .ndim = 1,
    .shape = {10},
    .name = "a",
};

/* --- promises --- */

/* Carries out the events of rank 0 up to the first of this kind. Returns true if there is
 * one, and rank 0's entry has not ended before it is carried out. */
static bool waits_for(enum hvd_agreement_event_kind kind)
{
    const struct hvd_agreement_event *event;
    bool was_there = false, has_waited = true;

    while (!was_there && (event = next_event(&ranks[0])) != NULL) {
        was_there = event->kind == kind;
        has_waited &= !has_ended(&ranks[0]);
        carry_out(&ranks[0], event);
    }
    return was_there && has_waited;
}

static void try_sets(void)
{
    const struct hvd_descriptor add = {
        .kind = HVD_KIND_SET_ADD, .name = "add", .note = "0"};
    struct hvd_descriptor removal = {.kind = HVD_KIND_SET_REMOVE, .name = "remove"};

    begin();
    agree(&add);
    tap_ok(waits_for(HVD_AGREEMENT_ADD_SET),
           "a set is added before the entry that asked for it ends");
    drain(&ranks[0]);
    tap_ok(has_ended(&ranks[0]) && ranks[0].request->value == 1,
           "the entry ends with the number of the set when the set has been added");
    hvd_agreement_from_above(ranks[1].agreement, ranks[1].inbox.data,
                             ranks[1].inbox.bytes, 4);
    drain(&ranks[1]);
    removal.root = 1;
    agree(&removal);
    tap_ok(waits_for(HVD_AGREEMENT_REMOVE_SET) && !has_ended(&ranks[0]),
           "a set is removed before the entry that asked for that ends");
    drain(&ranks[0]);
    tap_ok(has_ended(&ranks[0]) && atomic_load(&ranks[0].request->status) == 0,
           "the entry that asked for a removal ends when the set has been removed");
    end();
}

static uint64_t count_decided(const struct rank *rank)
{
    struct hvd_agreement_counts counts;

    hvd_agreement_count(rank->agreement, &counts);
    return counts.decided;
}

/* Checks the order of the events on a rank that has received a decision or, as rank 0,
 * has made it. */
static void try_order(struct rank *rank, const char *who)
{
    const struct hvd_agreement_event *event = next_event(rank);

    tap_ok(event != NULL && event->kind == HVD_AGREEMENT_SEND_DOWN &&
               event->down.is_first && count_decided(rank) == 0,
           "%s passes a decision down before it parses it", who);
    carry_out(rank, event);
    event = next_event(rank);
    tap_ok(event != NULL && event->kind == HVD_AGREEMENT_RUN &&
               event->batch->header.count == 1 && count_decided(rank) == 1,
           "then %s runs the batch", who);
    carry_out(rank, event);
    tap_ok(next_event(rank) == NULL, "%s has no more events", who);
}

static void try_orders(void)
{
    begin_ranks(MOST_RANKS);
    agree(&tensor);
    try_order(&ranks[0], "rank 0");
    hvd_agreement_from_above(ranks[1].agreement, ranks[1].inbox.data,
                             ranks[1].inbox.bytes, 4);
    try_order(&ranks[1], "a rank between parent and child");
    end();
}

/* Rank 1 has no entry for the tensor that the decision names. */
static void try_failure(void)
{
    int status = 0;

    begin();
    agree(&tensor);
    drain(&ranks[0]);
    hvd_agreement_drop(ranks[1].agreement, false, HVD_ERR_SHUTDOWN, "");
    tap_ok(hvd_agreement_from_above(ranks[1].agreement, ranks[1].inbox.data,
                                    ranks[1].inbox.bytes, 4) == 0 &&
               hvd_agreement_next(ranks[1].agreement, &status) == NULL &&
               status == HVD_ERR_NET,
           "a decision that cannot be carried out fails with the events");
    end();
}

static void try_heard(void)
{
    int unwatched;

    begin();
    agree(&tensor);
    unwatched = ranks[0].heard;
    end();
    begin();
    hvd_agreement_watch(ranks[0].agreement, true);
    agree(&tensor);
    tap_ok(unwatched == 0 && ranks[0].heard == 1,
           "rank 0 reports which rank has a tensor, but only if it is watched");
    end();
}

static void try_drop(void)
{
    begin();
    agree(&tensor);
    hvd_agreement_drop(ranks[0].agreement, true, HVD_ERR_PEER, "over");
    tap_ok(has_ended(&ranks[0]) && next_event(&ranks[0]) == NULL,
           "a job that fails drops the events that wait");
    end();
}

/* Puts enough events for the ring to grow and to wrap around. */
static void try_many(void)
{
    struct hvd_event_queue queue = {0};
    const struct hvd_agreement_event *event;
    int put = 0, taken = 0;
    bool is_same = true;

    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 7; i++, put++) {
            const int number = put;
            const struct hvd_agreement_event sent = {
                .kind = HVD_AGREEMENT_SEND_UP, .data = &number, .bytes = sizeof(number)};

            hvd_event_queue_put(&queue, &sent, NULL);
        }
        for (int i = 0; i < 5; i++, taken++) {
            event = hvd_event_queue_take(&queue);
            is_same &= memcmp(event->data, &taken, sizeof(taken)) == 0;
        }
    }
    while ((event = hvd_event_queue_take(&queue)) != NULL) {
        is_same &= memcmp(event->data, &taken, sizeof(taken)) == 0;
        taken++;
    }
    tap_ok(is_same && taken == put && !queue.failed, "%d events come out as they went in",
           put);
    hvd_event_queue_finish(&queue);
}

int main(void)
{
    try_sets();
    try_orders();
    try_failure();
    try_heard();
    try_drop();
    try_many();
    return tap_done();
}
