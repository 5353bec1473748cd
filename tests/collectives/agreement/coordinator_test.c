/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how many tensors rank 0 puts into a batch, and when it lets batches be
 * replayed. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/request/batch.h"
#include "collectives/agreement/coordinator.h"
#include "collectives/agreement/codec.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/replay_decisions.h"
#include "collectives/agreement/tensor_table.h"
#include "tests/tap.h"

enum {
    RANKS = 8192,
    TENSORS = 400
};

static const int64_t usual_threshold = 128 << 20;

/* Tensors of float32 that are ready at the same time. */
struct load {
    enum hvd_kind kind;
    int tensors;
    int64_t elements; /* elements of each tensor */
    int64_t threshold;
};

static void add(struct hvd_coordinator *coordinator, struct hvd_ready_table *ready_table,
                const struct load *load, int number)
{
    char name[32];
    const struct hvd_descriptor descriptor = {.kind = load->kind,
                                              .dtype = HVD_FLOAT32,
                                              .device = HVD_DEVICE_CPU,
                                              .ndim = 1,
                                              .shape = {load->elements},
                                              .name = name};
    const struct hvd_tensor_report report = {.descriptor = &descriptor};
    struct hvd_key key;

    snprintf(name, sizeof(name), "t%d", number);
    key = hvd_key_make(HVD_SET_GLOBAL, name);
    for (int i = 0; i < ready_table->sets->branches; i++) {
        hvd_ready_table_add(ready_table, &key, i, &report);
    }
    hvd_coordinator_admit(coordinator, 0);
}

/* Returns the largest number of tensors in a batch; *sum is the number of all tensors. */
static int64_t most_in_batch(const struct hvd_writer *writer, int64_t *sum)
{
    struct hvd_reader reader = {.data = writer->data, .bytes = writer->bytes};
    struct hvd_batch_header header;
    struct hvd_descriptor descriptor;
    struct hvd_record record;
    int64_t most = 0;

    *sum = 0;
    while (hvd_take_record(&reader, &record) == 0 &&
           hvd_take_batch(&reader, &record, &header) == 0) {
        most = header.count > most ? header.count : most;
        *sum += header.count;
        for (int64_t i = 0; i < header.count; i++) {
            hvd_take_record(&reader, &record);
            hvd_take_descriptor(&reader, &descriptor);
        }
    }
    return most;
}

static int64_t fuse(const struct hvd_sets *sets, struct load load, int64_t *sum)
{
    const struct hvd_fusion fusion = {.threshold = load.threshold};
    struct hvd_tensor_table names;
    struct hvd_response_cache cache;
    struct hvd_coordinator *coordinator;
    struct hvd_ready_table ready_table;
    const struct hvd_coordinator_config config = {
        .table = &ready_table, .cache = &cache, .fusion = &fusion};
    int64_t most;

    hvd_tensor_table_init(&names, NULL, NULL);
    hvd_response_cache_init(&cache, &names);
    hvd_ready_table_init(&ready_table, sets);
    hvd_coordinator_create(&config, &coordinator, NULL);
    for (int i = 0; i < load.tensors; i++) {
        add(coordinator, &ready_table, &load, i);
    }
    hvd_coordinator_decide(coordinator, true, 0);
    most = most_in_batch(&hvd_coordinator_writers(coordinator)->global, sum);
    hvd_coordinator_destroy(coordinator);
    hvd_ready_table_finish(&ready_table);
    hvd_response_cache_finish(&cache);
    hvd_tensor_table_finish(&names);
    return most;
}

static void test_many(const struct hvd_sets *sets)
{
    struct load load = {HVD_KIND_ALLREDUCE, TENSORS, 10, usual_threshold};
    int64_t sum, most = fuse(sets, load, &sum);

    tap_ok(most == TENSORS && sum == TENSORS, "small tensors are fused into one batch");
    load.kind = HVD_KIND_ADASUM;
    most = fuse(sets, load, &sum);
    tap_ok(most * RANKS <= HVD_ADASUM_SLICES && most > 1 && sum == TENSORS,
           "a batch of Adasum has %ld of them, limited by the memory of their slices",
           (long)most);
}

static void test_limits(const struct hvd_sets *sets)
{
    const int64_t bulk = HVD_BULK_BYTES / (int64_t)sizeof(float);
    struct load load = {HVD_KIND_ALLREDUCE, 4, 10, 3 * 10 * sizeof(float)};
    int64_t sum, most = fuse(sets, load, &sum);

    tap_ok(most == 3 && sum == 4, "a batch may have as many bytes as the threshold");
    load.threshold--;
    most = fuse(sets, load, &sum);
    tap_ok(most == 2 && sum == 4, "a batch does not have more bytes than the threshold");
    load = (struct load){HVD_KIND_ALLREDUCE, 2, bulk - 1, usual_threshold};
    tap_ok(fuse(sets, load, &sum) == 2 && sum == 2,
           "tensors below the bulk size are fused into one batch");
    load.elements = bulk;
    tap_ok(fuse(sets, load, &sum) == 1 && sum == 2,
           "tensors of that size are batches of their own");
}

/* --- replays --- */

enum {
    SET = 1
};

/* Returns the kind of the first decision about the set, or 0 if there is none, and
 * discards the message. */
static uint32_t first_decision(struct hvd_coordinator *coordinator)
{
    struct hvd_writer *sets = &hvd_coordinator_writers(coordinator)->sets;
    struct hvd_reader reader = {.data = sets->data, .bytes = sets->bytes};
    struct hvd_record part, decision = {0};

    if (hvd_take_record(&reader, &part) == 0) {
        hvd_take_record(&reader, &decision);
    }
    sets->bytes = 0;
    return decision.kind;
}

/* Lets all ranks of the set submit another tensor, on which the coordinator then may
 * decide. */
static void admit_other(struct hvd_coordinator *coordinator,
                        struct hvd_ready_table *table)
{
    const struct hvd_descriptor descriptor = {.kind = HVD_KIND_ALLREDUCE,
                                              .set = SET,
                                              .dtype = HVD_FLOAT32,
                                              .device = HVD_DEVICE_CPU,
                                              .ndim = 1,
                                              .shape = {1},
                                              .name = "other"};
    const struct hvd_tensor_report report = {.descriptor = &descriptor};
    const struct hvd_key key = hvd_key_make(SET, "other");

    for (int i = 0; i < table->sets->branches; i++) {
        hvd_ready_table_add(table, &key, i, &report);
    }
    hvd_coordinator_admit(coordinator, 0);
    hvd_coordinator_decide(coordinator, true, 0);
}

/* Repeats a batch of one tensor until a replay of it is announced. */
static bool announce(struct hvd_coordinator *coordinator,
                     struct hvd_cached_tensor *cached)
{
    const struct hvd_decided_batch batch = {
        .set = SET, .tensors = &cached, .count = 1, .bytes = 4, .may_repeat = true};

    for (int i = 0; i < 100; i++) {
        hvd_replay_decisions_note(hvd_coordinator_replays(coordinator), &batch);
        hvd_coordinator_continue(coordinator, 0);
        if (hvd_coordinator_has_message(coordinator)) {
            return first_decision(coordinator) == HVD_DECISION_REPLAY;
        }
    }
    return false;
}

static void try_replay(struct hvd_coordinator *coordinator, struct hvd_ready_table *table,
                       struct hvd_cached_tensor *cached)
{
    tap_ok(announce(coordinator, cached), "a batch that repeats is announced");
    admit_other(coordinator, table);
    tap_ok(first_decision(coordinator) == HVD_DECISION_BREAK,
           "another tensor of the set ends the replay");
    hvd_coordinator_decide(coordinator, true, 0);
    tap_ok(!hvd_coordinator_has_message(coordinator) &&
               hvd_replay_decisions_breaks(hvd_coordinator_replays(coordinator)) == 1,
           "the tensor is not decided on before the replay has ended on all ranks");
    hvd_replay_decisions_break(hvd_coordinator_replays(coordinator), SET, true);
    tap_ok(!hvd_coordinator_has_message(coordinator), "a replay is ended once");
    hvd_coordinator_end_replay(coordinator, SET, 0, 0);
    hvd_coordinator_decide(coordinator, true, 0);
    tap_ok(first_decision(coordinator) == HVD_DECISION_BATCH,
           "the tensor is decided on when the replay has ended");
}

static void test_replay(void)
{
    static const char *const hosts[] = {"n0", "n0", "n1"};
    static const int ranks[] = {0, 1};
    const struct hvd_fusion fusion = {.threshold = usual_threshold, .capacity = 16};
    const struct hvd_descriptor descriptor = {.kind = HVD_KIND_ALLREDUCE,
                                              .set = SET,
                                              .dtype = HVD_FLOAT32,
                                              .device = HVD_DEVICE_CPU,
                                              .ndim = 1,
                                              .shape = {1},
                                              .name = "a"};
    struct hvd_tensor_table names;
    struct hvd_response_cache cache;
    struct hvd_ready_table table;
    const struct hvd_coordinator_config config = {
        .table = &table, .cache = &cache, .fusion = &fusion, .may_replay = true};
    struct hvd_coordinator *coordinator;
    struct hvd_sets sets;
    struct hvd_layout layout;
    int status = 0;

    hvd_layout_init(&layout, hosts, 3, NULL);
    hvd_sets_init(&sets, &layout, 0, NULL);
    hvd_sets_add(&sets, SET, ranks, 2, NULL);
    hvd_tensor_table_init(&names, NULL, NULL);
    hvd_response_cache_init(&cache, &names);
    hvd_ready_table_init(&table, &sets);
    hvd_coordinator_create(&config, &coordinator, NULL);
    hvd_replay_decisions_add_set(hvd_coordinator_replays(coordinator), SET);
    try_replay(coordinator, &table, hvd_response_cache_add(&cache, 1, &descriptor));
    tap_ok(hvd_replay_decisions_settle(hvd_coordinator_replays(coordinator), &status) &&
               status == 0,
           "no replay is in force");
    hvd_coordinator_destroy(coordinator);
    hvd_ready_table_finish(&table);
    hvd_response_cache_finish(&cache);
    hvd_tensor_table_finish(&names);
    hvd_sets_finish(&sets);
    hvd_layout_finish(&layout);
}

int main(void)
{
    const char **hosts = calloc(RANKS, sizeof(hosts[0]));
    char(*names)[16] = calloc(RANKS, sizeof(names[0]));
    struct hvd_sets sets;
    struct hvd_layout layout;

    for (int i = 0; i < RANKS; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i / 8);
        hosts[i] = names[i];
    }
    hvd_layout_init(&layout, hosts, RANKS, NULL);
    hvd_sets_init(&sets, &layout, 0, NULL);
    test_many(&sets);
    test_limits(&sets);
    test_replay();
    hvd_sets_finish(&sets);
    hvd_layout_finish(&layout);
    free(names);
    free(hosts);
    return tap_done();
}
