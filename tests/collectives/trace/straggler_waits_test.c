/* SPDX-License-Identifier: Apache-2.0 */
/* Tests each promise of the straggler measurement. */
#include "collectives/trace/straggler_waits.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static unsigned random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* Notes a batch of the first queue with this wait; batches are 1 ms apart. */
static void note(struct hvd_straggler_waits *waits, enum hvd_kind kind, int64_t wait_us,
                 int number)
{
    int64_t ended_ns = 100000000000000 + 1000000LL * number;
    const struct hvd_straggler_batch batch = {
        .kind = kind,
        .submitted_ns = ended_ns - wait_us * 1000,
        .started_ns = ended_ns - wait_us * 1000,
        .ended_ns = ended_ns,
    };

    hvd_straggler_waits_note(waits, &batch);
}

static int hand_up(struct hvd_straggler_waits *from, struct hvd_straggler_waits *to)
{
    const void *payload;
    size_t bytes;
    int count = 0;

    while (hvd_straggler_waits_take(from, &payload, &bytes)) {
        hvd_straggler_waits_merge(to, payload, bytes);
        count++;
    }
    return count;
}

static void create_pair(struct hvd_straggler_waits *pair[2])
{
    hvd_straggler_waits_create(0, 2, 1, &pair[0], NULL);
    hvd_straggler_waits_create(1, 2, 0, &pair[1], NULL);
}

static void destroy_pair(struct hvd_straggler_waits *pair[2])
{
    hvd_straggler_waits_destroy(pair[0]);
    hvd_straggler_waits_destroy(pair[1]);
}

static void test_failed_job(void)
{
    const struct hvd_straggler_sums *sums;
    struct hvd_straggler_waits *pair[2];

    create_pair(pair);
    for (int i = 0; i < HVD_STRAGGLER_WINDOW + 10; i++) {
        note(pair[0], HVD_KIND_ALLREDUCE, 200, i);
        note(pair[1], HVD_KIND_ALLREDUCE, 100, i);
    }
    tap_ok(hand_up(pair[1], pair[0]) == 1, "a full window goes up at once");
    sums = hvd_straggler_waits_sums(pair[0]);
    tap_ok(!sums->is_complete && sums->compared == HVD_STRAGGLER_WINDOW &&
               sums->ranks[1].last == HVD_STRAGGLER_WINDOW &&
               sums->ranks[1].most_late_us == 100 &&
               sums->ranks[0].waited_us == 100 * HVD_STRAGGLER_WINDOW,
           "before the end of the job, the report has the windows sent so far, and is "
           "not complete");
    hvd_straggler_waits_close(pair[0]);
    tap_ok(!hvd_straggler_waits_sums(pair[0])->is_complete,
           "the report is not complete either when only rank 0 has closed");
    hvd_straggler_waits_close(pair[1]);
    hand_up(pair[1], pair[0]);
    tap_ok(hvd_straggler_waits_sums(pair[0])->is_complete &&
               hvd_straggler_waits_sums(pair[0])->compared == HVD_STRAGGLER_WINDOW + 10,
           "it is complete when all ranks have closed");
    destroy_pair(pair);
}

static void test_not_compared(void)
{
    const struct hvd_straggler_sums *sums;
    struct hvd_straggler_waits *pair[2];

    create_pair(pair);
    for (int i = 0; i < 2; i++) {
        const struct hvd_straggler_batch other = {
            .kind = HVD_KIND_ALLREDUCE, .priority = -1, .bytes = 7, .ended_ns = 1000 * i};

        note(pair[i], HVD_KIND_BROADCAST, 1 + 100 * i, 0);
        hvd_straggler_waits_note(pair[i], &other);
        hvd_straggler_waits_close(pair[i]);
    }
    hand_up(pair[1], pair[0]);
    sums = hvd_straggler_waits_sums(pair[0]);
    tap_ok(sums->is_complete && sums->compared == 0 && sums->ranks[0].last == 0 &&
               sums->ranks[1].waited_us == 0,
           "the root of a broadcast and the ranks of another process set do not count as "
           "late");
    tap_ok(sums->kinds[HVD_KIND_BROADCAST].batches == 2 &&
               sums->kinds[HVD_KIND_ALLREDUCE].bytes == 14,
           "the batches of a broadcast and of another process set are counted");
    destroy_pair(pair);
}

/* Ten batches are submitted together; rank 1 submits them half a second later. */
static void test_late_once(void)
{
    const struct hvd_straggler_sums *sums;
    struct hvd_straggler_waits *pair[2];

    create_pair(pair);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 10; i++) {
            const struct hvd_straggler_batch batch = {
                .kind = HVD_KIND_ALLREDUCE,
                .priority = 1,
                .submitted_ns = 1000 + 500000000LL * r,
                .started_ns = 500001000 + 3000000LL * i,
                .ended_ns = 500001000 + 3000000LL * (i + 1),
            };

            hvd_straggler_waits_note(pair[r], &batch);
        }
        hvd_straggler_waits_close(pair[r]);
    }
    hand_up(pair[1], pair[0]);
    sums = hvd_straggler_waits_sums(pair[0]);
    tap_ok(sums->ranks[1].last == 1 && sums->ranks[1].late_us == 500000 &&
               sums->ranks[0].waited_us == 500000 && sums->even == 9,
           "a rank that is late once counts as late once, however many batches waited");
    tap_ok(sums->kinds[HVD_KIND_ALLREDUCE].run_ns == 2 * 30000000,
           "the time of the batches does not include the waiting");
    destroy_pair(pair);
}

static void test_silent_child(void)
{
    struct hvd_straggler_waits *pair[2];

    create_pair(pair);
    for (int i = 0; i < 1000 * HVD_STRAGGLER_WINDOW; i++) {
        note(pair[0], HVD_KIND_ALLREDUCE, 10, i);
    }
    hvd_straggler_waits_close(pair[0]);
    for (int i = 0; i < 300 * HVD_STRAGGLER_WINDOW; i++) {
        note(pair[1], HVD_KIND_ALLREDUCE, 5, i);
    }
    hand_up(pair[1], pair[0]);
    tap_ok(!hvd_straggler_waits_sums(pair[0])->is_complete &&
               hvd_straggler_waits_sums(pair[0])->compared == 256 * HVD_STRAGGLER_WINDOW,
           "a rank that is silent for long makes the report incomplete, but memory stays "
           "bounded");
    destroy_pair(pair);
}

static void test_long_waits(void)
{
    const int64_t day_us = 24LL * 3600 * 1000000;
    const struct hvd_straggler_sums *sums;
    struct hvd_straggler_waits *pair[2];

    create_pair(pair);
    note(pair[0], HVD_KIND_BARRIER, day_us, 0);
    note(pair[1], HVD_KIND_BARRIER, 5, 0);
    hvd_straggler_waits_close(pair[0]);
    hvd_straggler_waits_close(pair[1]);
    hand_up(pair[1], pair[0]);
    sums = hvd_straggler_waits_sums(pair[0]);
    tap_ok(sums->ranks[1].last == 1 && sums->ranks[1].late_us > 4000000000,
           "a wait too long for the message still counts as the longer one");
    destroy_pair(pair);
}

/* Gives the message to a rank, which must then be able to finish its measurement. Returns
 * whether the message was accepted. */
static bool is_taken(const void *payload, size_t bytes)
{
    struct hvd_straggler_waits *waits;
    bool taken;

    hvd_straggler_waits_create(0, 2, 1, &waits, NULL);
    taken = hvd_straggler_waits_merge(waits, payload, bytes) == 0;
    for (int i = 0; i < 20; i++) {
        note(waits, HVD_KIND_ALLREDUCE, 9, i);
    }
    hvd_straggler_waits_close(waits);
    hvd_straggler_waits_destroy(waits);
    return taken;
}

static void test_bad_messages(void)
{
    struct hvd_straggler_waits *pair[2];
    char *copy;
    const void *payload;
    size_t bytes;
    int taken = 0;

    create_pair(pair);
    for (int i = 0; i < 20; i++) {
        note(pair[1], HVD_KIND_ALLREDUCE, 5, i);
    }
    hvd_straggler_waits_close(pair[1]);
    hvd_straggler_waits_take(pair[1], &payload, &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        taken += is_taken(payload, cut) ? 1 : 0;
    }
    tap_ok(taken == 0 && is_taken(payload, bytes),
           "a message that is cut anywhere is refused");
    copy = malloc(bytes);
    for (int i = 0; i < 50000; i++) {
        memcpy(copy, payload, bytes);
        for (unsigned k = 1 + draw(3); k > 0; k--) {
            copy[draw((unsigned)bytes)] = (char)draw(256);
        }
        taken += is_taken(copy, bytes) ? 1 : 0;
    }
    tap_ok(taken < 50000, "%d of 50000 damaged messages are accepted, without harm",
           taken);
    free(copy);
    destroy_pair(pair);
}

int main(void)
{
    random_state = tap_seed(20261122);
    test_failed_job();
    test_not_compared();
    test_late_once();
    test_silent_child();
    test_long_waits();
    test_bad_messages();
    return tap_done();
}
