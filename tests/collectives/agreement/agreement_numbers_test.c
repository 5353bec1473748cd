/* SPDX-License-Identifier: Apache-2.0 */
/* Impossible numbers in messages of other ranks: each ends the job, and nothing else
 * happens. Every message is first tried with valid numbers. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/stalled.h"
#include "collectives/agreement/tensor_table.h"
#include "collectives/request/batch.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"
#include "tests/tap.h"

static struct hvd_layout layout;

/* --- one rank, whose messages are not delivered --- */

struct rank {
    struct hvd_tensor_table tensors;
    struct hvd_sets sets;
    struct hvd_agreement *agreement;
    struct hvd_request *request; /* of tensor "a" */
    struct hvd_batch *batch; /* the batch that it runs */
};

static void on_ended(void *context, struct hvd_entry *entry, int status, const char *text)
{
    (void)context;
    hvd_entry_end(entry, status, text);
}

static struct hvd_boot_peer peers[] = {{.host = "n0"}, {.host = "n1"}};

/* Takes all events and keeps the last batch; returns the status after the last event. */
static int drain(struct rank *rank, int status)
{
    const struct hvd_agreement_event *event;

    while ((event = hvd_agreement_next(rank->agreement, &status)) != NULL) {
        if (event->kind == HVD_AGREEMENT_RUN) {
            hvd_batch_destroy(rank->batch);
            rank->batch = event->batch;
        }
    }
    return status;
}

static const struct hvd_descriptor tensor_a = {
    .rank = 1,
    .kind = HVD_KIND_ALLREDUCE,
    .dtype = HVD_FLOAT32,
    .op = HVD_SUM,
    .device = HVD_DEVICE_CPU,
    .ndim = 1,
    .shape = {10},
    .name = "a",
};

/* Creates the rank, which submits tensor a. */
static void begin(struct rank *rank, int number)
{
    struct hvd_agreement_settings settings = {
        .tensors = &rank->tensors,
        .sets = &rank->sets,
        .peers = peers,
        .fusion = {.threshold = 1 << 20, .capacity = 16, .cycle_ns = 1},
        .may_replay = true,
        .stall_warning_ns = 1,
    };

    *rank = (struct rank){0};
    hvd_tensor_table_init(&rank->tensors, on_ended, NULL);
    hvd_sets_init(&rank->sets, &layout, number, NULL);
    hvd_agreement_create(&settings, &rank->agreement, NULL);
    rank->request = hvd_request_create(1);
    rank->request->entries[0].descriptor = tensor_a;
    rank->request->entries[0].descriptor.name = strdup("a");
    hvd_tensor_table_add(&rank->tensors, rank->request, NULL);
    drain(rank, hvd_agreement_submit(rank->agreement, &rank->request->entries[0], 1));
}

static void end(struct rank *rank)
{
    hvd_agreement_drop(rank->agreement, true, HVD_ERR_SHUTDOWN, "");
    hvd_batch_destroy(rank->batch);
    hvd_agreement_destroy(rank->agreement);
    hvd_sets_finish(&rank->sets);
    hvd_tensor_table_finish(&rank->tensors);
    hvd_request_drop(rank->request);
}

/* --- messages in which one number is changed --- */

static struct {
    struct hvd_writer out;
    int at; /* numbers written so far */
    int bad_at; /* the one to change; -1: none */
    int64_t bad;
} message;

static int64_t pick(int64_t good)
{
    return message.at++ == message.bad_at ? message.bad : good;
}

static void number(int64_t good)
{
    hvd_put_int(&message.out, pick(good));
}

static void record(uint32_t kind, uint32_t count, uint64_t id)
{
    kind = (uint32_t)pick(kind);
    count = (uint32_t)pick(count);
    hvd_put_record(&message.out, kind, count, (uint64_t)pick((int64_t)id));
}

/* Writes a descriptor as hvd_put_descriptor does; its integers have the numbers 0 to
 * 13. */
static void descriptor(enum hvd_kind kind)
{
    double one = 1;

    number(1); /* 0: rank */
    number(HVD_SET_GLOBAL); /* 1 */
    number(kind); /* 2 */
    number(HVD_FLOAT32); /* 3 */
    number(0); /* 4: wire type */
    number(HVD_SUM); /* 5 */
    number(0); /* 6: root */
    number(HVD_DEVICE_CPU); /* 7 */
    number(0); /* 8: whether the call is numbered */
    hvd_put(&message.out, &one, sizeof(one));
    hvd_put(&message.out, &one, sizeof(one));
    number(0); /* 9: largest block */
    number(1); /* 10: dimensions */
    number(10); /* 11: elements */
    number(0); /* 12: group */
    number(0); /* 13: tensors in the group */
    hvd_put_text(&message.out, "a");
    hvd_put_text(&message.out, "");
}

/* Messages up, from rank 1 to rank 0. Number 0 is the message's position in the sequence;
 * a record has three numbers. */

static void join(void)
{
    record(HVD_REPORT_JOIN, 1, 1);
}

static void tensor(void)
{
    record(HVD_REPORT_TENSOR, 0, 0);
    number(0); /* 4: flags */
    number(0); /* 5: largest block */
    descriptor(HVD_KIND_ALLREDUCE); /* 6 ... */
}

static void rows(void)
{
    record(HVD_REPORT_TENSOR, 1, 0);
    number(0);
    number(0);
    descriptor(HVD_KIND_ALLGATHER); /* 6 ... 19 */
    number(1); /* 20: rank */
    number(10); /* 21: rows */
}

static void cached(void)
{
    record(HVD_REPORT_CACHED, 0, 1);
}

static void silent(void)
{
    record(HVD_REPORT_SILENT, 1, 1);
}

static void held(void)
{
    record(HVD_REPORT_HELD, 1, 8);
    number(-1);
}

static void stall(void)
{
    record(HVD_REPORT_STALL, 1, 0);
}

/* Messages down, from rank 0 to rank 1. Number 0 is the message's position in the
 * sequence, number 1 the length of the rest. */

static void header(enum hvd_kind kind, uint32_t count, int64_t row_count)
{
    record(HVD_DECISION_BATCH, count, 0); /* 2, 3, 4 */
    number(kind); /* 5 */
    number(HVD_SET_GLOBAL); /* 6 */
    number(HVD_PRIORITY_QUICK); /* 7 */
    number(0); /* 8: status */
    hvd_put_text(&message.out, "");
    number(0); /* 9: largest block */
    number(row_count); /* 10 */
    number(0); /* 11: value */
}

static void batch(void)
{
    header(HVD_KIND_ALLREDUCE, 1, 0);
    record(HVD_TENSOR_FULL, 1, 1); /* 12, 13, 14 */
    descriptor(HVD_KIND_ALLREDUCE); /* 15 ... 28 */
}

/* The batch of tensor a, which gives the tensor id 1. */
static void replay(void)
{
    batch();
    record(HVD_DECISION_REPLAY, 1, 1); /* 29, 30, 31 */
    number(HVD_PRIORITY_QUICK); /* 32 */
    number(1); /* 33: tensors */
    record(HVD_TENSOR_IDS, 1, 1); /* 34, 35, 36 */
}

static void evict(void)
{
    batch();
    record(HVD_DECISION_EVICT, 1, 1); /* 29, 30, 31 */
}

static void evict_replayed(void)
{
    replay();
    record(pick(0) != 0 ? HVD_DECISION_EVICT : HVD_DECISION_ASK, 1, 1); /* 37 */
}

static void priorities(int64_t least, int64_t most)
{
    number(least);
    number(0);
    number(most);
    number(0);
}

static void resume(void)
{
    replay();
    record(HVD_DECISION_BREAK, 1, 1); /* 37, 38, 39 */
    record(HVD_DECISION_RESUME, 1, 1); /* 40, 41, 42 */
    priorities(0, 0); /* 43 ... 46 */
}

static void settings(void)
{
    record(HVD_DECISION_SETTINGS, 1, 0); /* 2, 3, 4 */
    number(1); /* 5: threshold */
    number(1); /* 6: cycle time */
}

/* --- the cases --- */

static int take(struct rank *rank, bool goes_up)
{
    if (goes_up) {
        return hvd_agreement_from_below(rank->agreement, 1, message.out.data,
                                        message.out.bytes, 2);
    }
    return hvd_agreement_from_above(rank->agreement, message.out.data, message.out.bytes,
                                    2);
}

static int try(void (*write)(void), bool goes_up, int bad_at, int64_t bad)
{
    struct rank rank;
    int status;

    message.out.bytes = 0;
    message.at = 0;
    message.bad_at = bad_at;
    message.bad = bad;
    number(goes_up ? 0 : 1);
    if (!goes_up) {
        number(0);
    }
    write();
    if (!goes_up && bad_at != 1) {
        int64_t bytes = (int64_t)(message.out.bytes - 2 * sizeof(int64_t));

        memcpy(message.out.data + sizeof(int64_t), &bytes, sizeof(bytes));
    }
    begin(&rank, goes_up ? 0 : 1);
    status = drain(&rank, take(&rank, goes_up));
    end(&rank);
    return status;
}

struct bad {
    void (*write)(void);
    const char *name;
    int at;
    int64_t value;
    const char *what;
};

static const struct bad up[] = {
    {stall, "a stall", 0, 1, "a position that has not been reached"},
    {stall, "a stall", 0, -1, "a negative position"},
    {stall, "a report", 1, 77, "an unknown kind"},
    {join, "a join", 3, 0, "a rank of another branch"},
    {join, "a join", 3, 2, "an unknown rank"},
    {join, "a join", 3, INT64_MAX, "a huge rank"},
    {silent, "a silent rank", 3, 0, "a rank of another branch"},
    {silent, "a silent rank", 3, 2, "an unknown rank"},
    {held, "a list", 3, 9, "more bytes than the message"},
    {cached, "a tensor's id", 2, 1, "an unknown id"},
    {tensor, "a tensor", 2, 1, "more rows than the message"},
    {tensor, "a tensor", 3, 7, "an unknown id"},
    {tensor, "a tensor", 5, -1, "a largest block below 0"},
    {tensor, "a tensor", 6, -1, "rank -1"},
    {tensor, "a tensor", 6, 2, "an unknown rank"},
    {tensor, "a tensor", 7, 1, "an unknown process set"},
    {tensor, "a tensor", 7, -1, "process set -1"},
    {tensor, "a tensor", 8, 12, "an unknown operation"},
    {tensor, "a tensor", 8, -1, "operation -1"},
    {tensor, "a tensor", 8, 1LL << 32, "an operation that is known in 32 bits"},
    {tensor, "a tensor", 9, HVD_DTYPE_COUNT, "an unknown type"},
    {tensor, "a tensor", 10, -1, "an unknown wire type"},
    {tensor, "a tensor", 11, HVD_OP_COUNT, "an unknown reduction"},
    {tensor, "a tensor", 13, 1, "a device of another rank"},
    {tensor, "a tensor", 15, -1, "a largest split below 0"},
    {tensor, "a tensor", 16, HVD_MAX_DIMS + 1, "too many dimensions"},
    {tensor, "a tensor", 16, -1, "a negative number of dimensions"},
    {tensor, "a tensor", 17, -1, "a negative number of elements"},
    {tensor, "a tensor", 17, 1LL << 62, "too many bytes for 64 bits"},
    {tensor, "a tensor", 19, -1, "a group of negative size"},
    {rows, "an allgather", 20, -1, "rows of rank -1"},
    {rows, "an allgather", 21, -1, "a negative number of rows"},
};

static const struct bad down[] = {
    {batch, "a decision", 0, 0, "a position that was seen before"},
    {batch, "a decision", 1, 4096, "more bytes than the message"},
    {batch, "a decision", 2, 77, "an unknown kind"},
    {batch, "a batch", 3, 0, "no tensors"},
    {batch, "a batch", 3, UINT32_MAX, "more tensors than the cache has"},
    {batch, "a batch", 5, HVD_KIND_ALLGATHER, "another operation than its tensors"},
    {batch, "a batch", 5, 99, "an unknown operation"},
    {batch, "a batch", 6, 1, "an unknown process set"},
    {batch, "a batch", 6, -1, "process set -1"},
    {batch, "a batch", 7, HVD_PRIORITIES, "an unknown priority"},
    {batch, "a batch", 8, HVD_INPROGRESS, "the status of a request in flight"},
    {batch, "a batch", 9, -1, "a largest block below 0"},
    {batch, "a batch", 10, 1, "rows of a kind without rows"},
    {batch, "a batch", 10, INT64_MAX, "more rows than the message"},
    {batch, "a batch", 17, HVD_KIND_BROADCAST, "a tensor of another operation"},
    {batch, "a batch", 18, HVD_INT32, "a tensor of another type"},
    {evict, "an eviction", 31, 2, "an unknown id"},
    {evict_replayed, "an eviction", 37, 1, "a replayed tensor"},
    {replay, "a replay", 30, 0, "no batches"},
    {replay, "a replay", 30, UINT32_MAX, "more batches than the message"},
    {replay, "a replay", 32, HVD_PRIORITY_SPARE, "a priority without replay"},
    {replay, "a replay", 32, -1, "priority -1"},
    {replay, "a replay", 33, 0, "a batch of no tensors"},
    {replay, "a replay", 33, -1, "a batch of negative size"},
    {replay, "a replay", 33, 2, "a batch larger than the cache"},
    {replay, "a replay", 35, 2, "more ids than tensors"},
    {replay, "a replay", 36, 2, "an unknown id"},
    {resume, "the end of a replay", 43, 5, "too high a number of started batches"},
    {resume, "the end of a replay", 45, 5,
     "a number of started batches that no rank has"},
    {resume, "the end of a replay", 46, 1, "batches of a queue that has none"},
    {settings, "settings", 5, -1, "a threshold below 0"},
    {settings, "settings", 6, -1, "a cycle time below 0"},
};

static void check(const struct bad *bad, bool goes_up)
{
    int good_status = try(bad->write, goes_up, -1, 0);
    int bad_status = try(bad->write, goes_up, bad->at, bad->value);

    tap_ok(good_status == 0 && bad_status == HVD_ERR_NET,
           "%s with %s ends the job (%d, %d)", bad->name, bad->what, good_status,
           bad_status);
}

int main(void)
{
    const char *const hosts[] = {"n0", "n1"};

    hvd_log_to(NULL, HVD_LOG_OFF);
    hvd_layout_init(&layout, hosts, 2, NULL);
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
        check(&up[i], true);
    }
    for (size_t i = 0; i < sizeof(down) / sizeof(down[0]); i++) {
        check(&down[i], false);
    }
    hvd_writer_finish(&message.out);
    hvd_layout_finish(&layout);
    return tap_done();
}
