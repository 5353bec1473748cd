/* SPDX-License-Identifier: Apache-2.0 */
/* How many tensors rank 0 puts into one batch. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/request/batch.h"
#include "collectives/agreement/coordinator.h"
#include "collectives/agreement/readiness.h"
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
    int64_t elements; /* of each */
    int64_t threshold;
};

static void add(struct hvd_coordinator *coordinator,
                struct hvd_readiness_table *readiness_table, const struct load *load,
                int number)
{
    char name[32];
    const struct hvd_proposal proposal = {.kind = load->kind,
                                          .dtype = HVD_FLOAT32,
                                          .device = HVD_DEVICE_CPU,
                                          .ndim = 1,
                                          .shape = {load->elements},
                                          .name = name};
    const struct hvd_tensor_report report = {.proposal = &proposal};
    struct hvd_key key;

    snprintf(name, sizeof(name), "t%d", number);
    key = hvd_key_make(HVD_SET_GLOBAL, name);
    for (int i = 0; i < readiness_table->membership->branches; i++) {
        hvd_readiness_table_add(readiness_table, &key, i, &report);
    }
    hvd_coordinator_add(coordinator, hvd_readiness_table_take(readiness_table), 0);
}

/* The most tensors of a batch; all tensors are counted in *sum. */
static int64_t most_in_batch(const struct hvd_writer *writer, int64_t *sum)
{
    struct hvd_reader reader = {.data = writer->data, .bytes = writer->bytes};
    struct hvd_batch_header header;
    struct hvd_proposal proposal;
    struct hvd_record record;
    int64_t most = 0;

    *sum = 0;
    while (hvd_take_record(&reader, &record) == 0 &&
           hvd_take_batch(&reader, &record, &header) == 0) {
        most = header.count > most ? header.count : most;
        *sum += header.count;
        for (int64_t i = 0; i < header.count; i++) {
            hvd_take_record(&reader, &record);
            hvd_take_proposal(&reader, &proposal);
        }
    }
    return most;
}

static int64_t fuse(const struct hvd_membership *membership, struct load load,
                    int64_t *sum)
{
    const struct hvd_fusion fusion = {.threshold = load.threshold};
    struct hvd_tensor_table names;
    struct hvd_tensor_cache cache;
    struct hvd_decision_writers writers = {0};
    struct hvd_coordinator *coordinator;
    struct hvd_readiness_table readiness_table;
    int64_t most;

    hvd_tensor_table_init(&names, NULL, NULL);
    hvd_tensor_cache_init(&cache, &names);
    hvd_readiness_table_init(&readiness_table, membership);
    hvd_coordinator_create(&readiness_table, &cache, &fusion, &coordinator, NULL);
    for (int i = 0; i < load.tensors; i++) {
        add(coordinator, &readiness_table, &load, i);
    }
    hvd_coordinator_answer(coordinator, false, 0, &writers);
    most = most_in_batch(&writers.global, sum);
    hvd_coordinator_destroy(coordinator);
    hvd_readiness_table_finish(&readiness_table);
    hvd_tensor_cache_finish(&cache);
    hvd_tensor_table_finish(&names);
    hvd_writer_finish(&writers.global);
    hvd_writer_finish(&writers.sets);
    return most;
}

static void test_many(const struct hvd_membership *membership)
{
    struct load load = {HVD_KIND_ALLREDUCE, TENSORS, 10, usual_threshold};
    int64_t sum, most = fuse(membership, load, &sum);

    tap_ok(most == TENSORS && sum == TENSORS, "small tensors are summed up in one batch");
    load.kind = HVD_KIND_ADASUM;
    most = fuse(membership, load, &sum);
    tap_ok(most * RANKS <= HVD_ADASUM_SLICES && most > 1 && sum == TENSORS,
           "a batch of Adasum has %ld of them, by the memory of their slices",
           (long)most);
}

static void test_limits(const struct hvd_membership *membership)
{
    const int64_t bulk = HVD_BULK_BYTES / (int64_t)sizeof(float);
    struct load load = {HVD_KIND_ALLREDUCE, 4, 10, 3 * 10 * sizeof(float)};
    int64_t sum, most = fuse(membership, load, &sum);

    tap_ok(most == 3 && sum == 4, "a batch has as many bytes as the threshold says");
    load.threshold--;
    most = fuse(membership, load, &sum);
    tap_ok(most == 2 && sum == 4, "and no more");
    load = (struct load){HVD_KIND_ALLREDUCE, 2, bulk - 1, usual_threshold};
    tap_ok(fuse(membership, load, &sum) == 2 && sum == 2,
           "tensors below the size of bulk are summed up in one batch");
    load.elements = bulk;
    tap_ok(fuse(membership, load, &sum) == 1 && sum == 2,
           "those of that size are batches of their own");
}

int main(void)
{
    const char **hosts = calloc(RANKS, sizeof(hosts[0]));
    char(*names)[16] = calloc(RANKS, sizeof(names[0]));
    struct hvd_membership membership;
    struct hvd_layout layout;

    for (int i = 0; i < RANKS; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i / 8);
        hosts[i] = names[i];
    }
    hvd_layout_init(&layout, hosts, RANKS, NULL);
    hvd_membership_init(&membership, &layout, 0, NULL);
    test_many(&membership);
    test_limits(&membership);
    hvd_membership_finish(&membership);
    hvd_layout_finish(&layout);
    free(names);
    free(hosts);
    return tap_done();
}
