/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report over time: columns, scores, buckets, and how they get there. */
#include "collectives/trace/straggler_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_buckets.h"
#include "collectives/trace/straggler_waits.h"
#include "tests/tap.h"

static const struct hvd_straggler_cell *
cell_of(const struct hvd_straggler_history *history, int rank, int column)
{
    return &history->cells[(size_t)rank * (size_t)history->room + (size_t)column];
}

/* Adds up a row of the history. */
static int64_t late_sum(const struct hvd_straggler_history *history, int rank)
{
    int64_t sum = 0;

    for (int i = 0; i < history->room; i++) {
        sum += cell_of(history, rank, i)->late_us;
    }
    return sum;
}

static void test_columns(void)
{
    enum {
        STEPS = 5 * HVD_HISTORY_COLUMNS
    };
    struct hvd_straggler_history *history;
    int64_t moving_us = 0;

    hvd_straggler_history_create(3, &history, NULL);
    for (int i = 0; i < STEPS; i++) {
        hvd_straggler_history_add_batch(history, i, 2, 10 * (int64_t)(i + 1));
        hvd_straggler_history_add_late(history, i, i % 2, 7);
        hvd_straggler_history_add_wait(history, i, 2, 5);
    }
    for (int i = 0; i < history->count; i++) {
        moving_us += history->columns[i].moving_us;
    }
    tap_ok(history->width == 8 && history->count == STEPS / 8,
           "neighbouring columns are merged when the history is full");
    tap_ok(moving_us == (int64_t)2 * STEPS && late_sum(history, 0) == 7 * STEPS / 2 &&
               late_sum(history, 1) == 7 * STEPS / 2 && late_sum(history, 2) == 0,
           "and nothing is lost or counted twice");
    tap_ok(hvd_straggler_history_span_us(history, 3) == 80 &&
               hvd_straggler_history_computing_us(history, 3, 2) == 80 - 16 - 40 &&
               hvd_straggler_history_computing_us(history, 3, 0) == 80 - 16,
           "a column is split into computing, waiting and moving");
    hvd_straggler_history_count_steps(history);
    tap_ok(history->count == 1 && history->has_steps && history->width == 1 &&
               cell_of(history, 2, 0)->waited_us == (uint32_t)5 * STEPS,
           "all batches before the first step are in the first column");
    hvd_straggler_history_destroy(history);
    hvd_straggler_history_create(1 << 12, &history, NULL);
    tap_ok(history->room == 1 << 8, "the history of a large job has fewer columns");
    hvd_straggler_history_add_late(history, 0, 7, (int64_t)3 << 32);
    tap_ok(cell_of(history, 7, 0)->late_us == UINT32_MAX,
           "a very long time stays the longest");
    hvd_straggler_history_destroy(history);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 0.01;
}

/* Steps of 100 us without moving. Rank 0 computes 50 us, rank 1 always 100 us, rank 2
 * 25 us and in the second half 100 us. */
static void test_scores(void)
{
    struct hvd_straggler_scores scores[3];
    struct hvd_straggler_history *history;

    hvd_straggler_history_create(3, &history, NULL);
    for (int i = 0; i < 80; i++) {
        hvd_straggler_history_add_batch(history, i, 0, 100 * (int64_t)(i + 1));
        hvd_straggler_history_add_wait(history, i, 0, 50);
        hvd_straggler_history_add_wait(history, i, 2, i < 40 ? 75 : 0);
    }
    tap_ok(hvd_straggler_history_score(history, scores) == 0 &&
               is_near(scores[0].relative, 1) && is_near(scores[1].relative, 0.5) &&
               is_near(scores[2].relative, 0.5),
           "the relative score compares with the fastest rank: %.2f %.2f %.2f",
           scores[0].relative, scores[1].relative, scores[2].relative);
    tap_ok(is_near(scores[0].individual, 1) && is_near(scores[1].individual, 1) &&
               is_near(scores[2].individual, 0.25),
           "the individual score compares with the rank's own best time: %.2f %.2f %.2f",
           scores[0].individual, scores[1].individual, scores[2].individual);
    hvd_straggler_history_destroy(history);
    hvd_straggler_history_create(3, &history, NULL);
    for (int i = 0; i < 80; i++) {
        hvd_straggler_history_add_batch(history, i, 0, 10000 * (int64_t)(i + 1));
        for (int rank = 0; rank < 3; rank++) {
            hvd_straggler_history_add_wait(history, i, rank, 9999 - 20 * (int64_t)rank);
        }
    }
    tap_ok(hvd_straggler_history_score(history, scores) == 0 &&
               is_near(scores[1].relative, 1) && is_near(scores[2].relative, 1),
           "differences of less than a hundredth of a step do not count");
    hvd_straggler_history_destroy(history);
}

static void test_buckets(void)
{
    static struct hvd_straggler_buckets buckets;
    struct hvd_straggler_bucket batch = {.kind = HVD_KIND_ALLREDUCE, .bytes = 8};
    int first, again, larger;

    batch.tensors = 1;
    snprintf(batch.name, sizeof(batch.name), "layer");
    first = hvd_straggler_buckets_count(&buckets, &batch);
    again = hvd_straggler_buckets_count(&buckets, &batch);
    batch.tensors = 2;
    larger = hvd_straggler_buckets_count(&buckets, &batch);
    hvd_straggler_buckets_add(&buckets, first, 30, 5);
    hvd_straggler_buckets_add(&buckets, first, 20, 0);
    tap_ok(first == again && first != larger && buckets.list[first].batches == 2 &&
               buckets.list[first].bytes == 16 && buckets.list[first].moving_us == 50 &&
               buckets.list[first].least_us == 20 && buckets.list[first].late_us == 5,
           "batches of the same tensors are one bucket");
    for (int i = 0; i < 2 * HVD_BUCKETS; i++) {
        snprintf(batch.name, sizeof(batch.name), "tensor %d", i);
        hvd_straggler_buckets_count(&buckets, &batch);
    }
    tap_ok(buckets.count == HVD_BUCKETS &&
               strcmp(buckets.list[HVD_BUCKETS - 1].name, "(others)") == 0 &&
               buckets.list[HVD_BUCKETS - 1].batches == HVD_BUCKETS + 3,
           "with too many kinds of batches, the last bucket stands for all others");
}

/* Two ranks. Rank 1 submits each batch 10 us after rank 0; a batch takes 3 us. The
 * program counts a step after each second batch, from batch `counted` on. */
static void run_pair(struct hvd_straggler_waits *pair[2], int batches, int counted)
{
    const void *payload;
    size_t bytes;

    for (int rank = 0; rank < 2; rank++) {
        hvd_straggler_waits_create(rank, 2, 1 - rank, &pair[rank], NULL);
        hvd_straggler_waits_keep(pair[rank], 0, NULL);
        for (int i = 0; i < batches; i++) {
            const int64_t began_ns = 20000 * (int64_t)i;
            const struct hvd_straggler_batch batch = {
                .kind = HVD_KIND_ALLREDUCE,
                .tensors = 1,
                .bytes = 4,
                .name = "gradient",
                .submitted_ns = began_ns + 5000 + 10000 * (int64_t)rank,
                .started_ns = began_ns + 15000,
                .ended_ns = began_ns + 18000,
                .steps = i < counted ? 0 : (i - counted) / 2,
            };

            hvd_straggler_waits_note(pair[rank], &batch);
        }
        hvd_straggler_waits_close(pair[rank]);
    }
    while (hvd_straggler_waits_take(pair[1], &payload, &bytes)) {
        hvd_straggler_waits_merge(pair[0], payload, bytes);
    }
}

static void destroy_pair(struct hvd_straggler_waits *pair[2])
{
    hvd_straggler_waits_destroy(pair[0]);
    hvd_straggler_waits_destroy(pair[1]);
}

static void test_measurement(void)
{
    struct hvd_straggler_waits *pair[2];
    const struct hvd_straggler_history *history;
    const struct hvd_straggler_sums *sums;

    run_pair(pair, 300, 300);
    sums = hvd_straggler_waits_sums(pair[0]);
    history = sums->history;
    tap_ok(!history->has_steps && history->count == 300 && history->width == 1 &&
               cell_of(history, 1, 299)->late_us == 10 &&
               cell_of(history, 0, 299)->late_us == 0 &&
               cell_of(history, 0, 299)->waited_us == 10 &&
               cell_of(history, 1, 299)->waited_us == 0 &&
               history->columns[299].moving_us == 3,
           "without steps, each batch has a column with the lateness of each rank");
    tap_ok(sums->buckets->count == 1 && sums->buckets->list[0].batches == 300 &&
               sums->buckets->list[0].moving_us == 900 &&
               sums->buckets->list[0].late_us == 3000,
           "the buckets have the times of all batches");
    destroy_pair(pair);

    run_pair(pair, 700, 300);
    history = hvd_straggler_waits_sums(pair[0])->history;
    tap_ok(history->has_steps && history->count == 200 &&
               cell_of(history, 1, 0)->late_us == 3020 &&
               cell_of(history, 1, 5)->late_us == 20 &&
               cell_of(history, 0, 5)->waited_us == 20,
           "with steps, each has a column, and the first one has what was before it");
    destroy_pair(pair);
}

/* Later windows send sums of several batches. */
static void test_long_job(void)
{
    enum {
        BATCHES = 200 * HVD_STRAGGLER_WINDOW
    };
    struct hvd_straggler_waits *pair[2];
    const struct hvd_straggler_history *history;
    int64_t waited_us = 0;
    int different = 0;

    run_pair(pair, BATCHES, BATCHES);
    history = hvd_straggler_waits_sums(pair[0])->history;
    for (int i = 0; i < history->count; i++) {
        waited_us += cell_of(history, 0, i)->waited_us;
        different += cell_of(history, 0, i)->waited_us != 10 * (uint32_t)history->width;
    }
    tap_ok(history->width == 16 && waited_us == (int64_t)10 * BATCHES && different == 0,
           "a long job has the same times in fewer, wider columns");
    destroy_pair(pair);
}

int main(void)
{
    test_columns();
    test_scores();
    test_buckets();
    test_measurement();
    test_long_job();
    return tap_done();
}
