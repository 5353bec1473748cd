/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of ranks in memory, whose windows travel up a tree, against sums made at once. */
#include "collectives/lateness.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    MOST_RANKS = 64,
    MOST_BATCHES = 3000
};

struct letter {
    struct letter *next;
    size_t bytes;
    char payload[];
};

/* What happens, before it does: times in microseconds since the job began. */
struct plan {
    int size;
    int fanout;
    int count;
    int joins_at; /* from this batch on the highest rank has joined; count: never */
    struct hvd_lateness_batch batches[MOST_BATCHES];
    int64_t came_us[MOST_BATCHES][MOST_RANKS];
    int64_t started_us[MOST_BATCHES];
    int64_t ended_us[MOST_BATCHES];
    int64_t clock_ns[MOST_RANKS]; /* what each rank's clock shows when the job begins */
};

struct job {
    const struct plan *plan;
    struct hvd_lateness *ranks[MOST_RANKS];
    struct letter *mail[MOST_RANKS]; /* to the parent, in order */
    int next[MOST_RANKS][HVD_LATENESS_LANES + 1]; /* batch, per lane and for no lane */
    bool is_closed[MOST_RANKS];
};

static unsigned random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static int parent_of(const struct plan *plan, int rank)
{
    return rank == 0 ? -1 : (rank - 1) / plan->fanout;
}

static int children_of(const struct plan *plan, int rank)
{
    int count = 0;

    for (int i = 1; i < plan->size; i++) {
        count += parent_of(plan, i) == rank ? 1 : 0;
    }
    return count;
}

static bool is_compared(const struct hvd_lateness_batch *batch)
{
    return batch->lane >= 0 && batch->kind != HVD_KIND_BROADCAST &&
           batch->kind != HVD_KIND_JOIN;
}

static bool has_joined(const struct plan *plan, int batch, int rank)
{
    return batch >= plan->joins_at && rank == plan->size - 1;
}

/* A batch starts when all have come and its lane is free. Ranks submit several ahead, but
 * nothing between what comes before a join and after it. */
static void make_times(struct plan *plan, int b, int64_t *now_us, int64_t *free_us)
{
    int64_t pause_us = b == plan->joins_at ? 1000000000 : draw(4) == 0 ? 100000 : 300;
    int64_t began_us = *now_us + pause_us;
    int64_t *lane_free_us = &free_us[plan->batches[b].lane + 1];

    plan->started_us[b] = *lane_free_us;
    for (int r = 0; r < plan->size; r++) {
        plan->came_us[b][r] = began_us + draw(draw(2) == 0 ? 4 : 50000);
        if (!has_joined(plan, b, r) && plan->came_us[b][r] > plan->started_us[b]) {
            plan->started_us[b] = plan->came_us[b][r];
        }
    }
    plan->ended_us[b] = plan->started_us[b] + 1 + draw(20000);
    *lane_free_us = plan->ended_us[b];
    *now_us = began_us;
}

static void make_plan(struct plan *plan, int size, int count)
{
    int64_t free_us[HVD_LATENESS_LANES + 1] = {0};
    int64_t now_us = 0;

    plan->size = size;
    plan->fanout = 1 + (int)draw(8);
    plan->count = count;
    plan->joins_at = draw(2) == 0 || size == 1 ? count : (int)draw((unsigned)count + 1);
    for (int r = 0; r < size; r++) {
        plan->clock_ns[r] = 1000000000LL * draw(1000000) + draw(1000000);
    }
    for (int b = 0; b < count; b++) {
        plan->batches[b] = (struct hvd_lateness_batch){
            .kind = (enum hvd_kind)draw(HVD_LATENESS_KINDS),
            .lane = (int)draw(HVD_LATENESS_LANES + 1) - 1,
            .tensors = 1 + draw(5),
            .bytes = draw(100000),
        };
        if (b >= plan->joins_at && !is_compared(&plan->batches[b])) {
            plan->batches[b].kind = HVD_KIND_ALLREDUCE; /* as the ranks would agree */
        }
        make_times(plan, b, &now_us, free_us);
    }
}

static struct hvd_lateness_batch batch_of(const struct plan *plan, int batch, int rank)
{
    struct hvd_lateness_batch own = plan->batches[batch];
    int64_t clock_ns = plan->clock_ns[rank];

    own.submitted_ns =
        has_joined(plan, batch, rank) ? 0 : clock_ns + plan->came_us[batch][rank] * 1000;
    own.started_ns = clock_ns + plan->started_us[batch] * 1000;
    own.ended_ns = clock_ns + plan->ended_us[batch] * 1000;
    return own;
}

/* --- the job ----------------------------------------------------------------------------- */

static void post(struct job *job, int rank)
{
    struct letter **end = &job->mail[rank];
    const void *payload;
    size_t bytes;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    while (hvd_lateness_take(job->ranks[rank], &payload, &bytes)) {
        *end = malloc(sizeof(**end) + bytes);
        (*end)->next = NULL;
        (*end)->bytes = bytes;
        memcpy((*end)->payload, payload, bytes);
        end = &(*end)->next;
    }
}

/* The next batch of a lane, or of no lane; false when there is none. */
static bool run_one(struct job *job, int rank, int lane)
{
    int *next = &job->next[rank][lane + 1];

    while (*next < job->plan->count) {
        int batch = (*next)++;

        if (job->plan->batches[batch].lane == lane) {
            struct hvd_lateness_batch own = batch_of(job->plan, batch, rank);

            hvd_lateness_note(job->ranks[rank], &own);
            return true;
        }
    }
    return false;
}

static bool deliver(struct job *job, int rank)
{
    struct letter *letter = job->mail[rank];
    int parent = parent_of(job->plan, rank);

    if (letter == NULL || parent < 0) {
        return false;
    }
    job->mail[rank] = letter->next;
    if (hvd_lateness_merge(job->ranks[parent], letter->payload, letter->bytes) != 0) {
        tap_ok(false, "a message that a rank has sent is taken");
    }
    free(letter);
    post(job, parent);
    return true;
}

static bool is_finished(const struct job *job, int rank)
{
    for (int i = 0; i <= HVD_LATENESS_LANES; i++) {
        if (job->next[rank][i] < job->plan->count) {
            return false;
        }
    }
    return true;
}

static void start_job(struct job *job, const struct plan *plan)
{
    memset(job, 0, sizeof(*job));
    job->plan = plan;
    for (int r = 0; r < plan->size; r++) {
        hvd_lateness_create(r, plan->size, children_of(plan, r), &job->ranks[r], NULL);
    }
}

static void end_job(struct job *job)
{
    for (int r = 0; r < job->plan->size; r++) {
        hvd_lateness_destroy(job->ranks[r]);
        while (job->mail[r] != NULL) {
            struct letter *letter = job->mail[r];

            job->mail[r] = letter->next;
            free(letter);
        }
    }
}

/* Lets ranks run, lanes pass one another and letters be late, at random. */
static void run_job(struct job *job, long steps)
{
    int closed = 0;
    bool moved = true;

    for (long i = 0; (i < steps || steps < 0) && (moved || i % 1000 != 0); i++) {
        int rank = (int)draw((unsigned)job->plan->size);

        moved = i % 1000 == 0 ? false : moved;
        for (unsigned k = draw(200); k > 0; k--) {
            moved |= run_one(job, rank, (int)draw(HVD_LATENESS_LANES + 1) - 1);
        }
        if (is_finished(job, rank) && !job->is_closed[rank]) {
            hvd_lateness_close(job->ranks[rank]);
            job->is_closed[rank] = true;
            closed++;
        }
        post(job, rank);
        moved |= deliver(job, (int)draw((unsigned)job->plan->size)) ||
                 closed < job->plan->size;
    }
}

/* --- what must come out ------------------------------------------------------------------ */

struct expected {
    int64_t compared;
    int64_t even;
    struct hvd_lateness_rank ranks[MOST_RANKS];
    struct hvd_lateness_kind kinds[HVD_LATENESS_KINDS];
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Seen from outside: the lane is free, the ranks come, the last but one waits for the last. */
static void expect_compared(const struct plan *plan, int batch, int64_t *free_us,
                            struct expected *expected)
{
    int64_t last_us = *free_us;
    int64_t before_us = *free_us;
    int last = 0;
    int ranks = 0;

    for (int r = 0; r < plan->size; r++) {
        int64_t came_us = later(plan->came_us[batch][r], *free_us);

        if (has_joined(plan, batch, r)) {
            continue;
        }
        ranks++;
        last = came_us > last_us ? r : last;
        before_us = came_us > last_us ? last_us : later(before_us, came_us);
        last_us = later(last_us, came_us);
    }
    for (int r = 0; r < plan->size; r++) {
        if (!has_joined(plan, batch, r)) {
            expected->ranks[r].waited_us +=
                last_us - later(plan->came_us[batch][r], *free_us);
        }
    }
    expected->compared++;
    if (ranks > 1 && last_us == before_us) {
        expected->even++;
    } else if (ranks > 1) {
        struct hvd_lateness_rank *late = &expected->ranks[last];

        late->last++;
        late->late_us += last_us - before_us;
        late->most_late_us = later(late->most_late_us, last_us - before_us);
    }
    expected->kinds[plan->batches[batch].kind].run_ns +=
        plan->size * (plan->ended_us[batch] - last_us) * 1000;
    *free_us = plan->ended_us[batch];
}

static void expect(const struct plan *plan, struct expected *expected)
{
    int64_t free_us[HVD_LATENESS_LANES] = {0};

    memset(expected, 0, sizeof(*expected));
    for (int b = 0; b < plan->count; b++) {
        const struct hvd_lateness_batch *batch = &plan->batches[b];
        struct hvd_lateness_kind *kind = &expected->kinds[batch->kind];

        kind->batches += plan->size;
        kind->tensors += plan->size * batch->tensors;
        kind->bytes += plan->size * batch->bytes;
        if (is_compared(batch)) {
            expect_compared(plan, b, &free_us[batch->lane], expected);
        } else {
            kind->run_ns += plan->size * (plan->ended_us[b] - plan->started_us[b]) * 1000;
        }
    }
}

static bool has_ranks(const struct plan *plan, const struct hvd_lateness_sums *sums,
                      const struct expected *expected)
{
    for (int r = 0; r < plan->size; r++) {
        const struct hvd_lateness_rank *found = &sums->ranks[r];
        const struct hvd_lateness_rank *right = &expected->ranks[r];

        if (found->last != right->last || found->late_us != right->late_us ||
            found->most_late_us != right->most_late_us ||
            found->waited_us != right->waited_us) {
            tap_note("rank %d: last %lld %lld, late %lld %lld, waited %lld %lld", r,
                     (long long)found->last, (long long)right->last,
                     (long long)found->late_us, (long long)right->late_us,
                     (long long)found->waited_us, (long long)right->waited_us);
            return false;
        }
    }
    return true;
}

static bool is_right(const struct job *job)
{
    const struct hvd_lateness_sums *sums = hvd_lateness_sums(job->ranks[0]);
    static struct expected expected;

    expect(job->plan, &expected);
    return sums->is_complete && sums->size == job->plan->size &&
           sums->compared == expected.compared && sums->even == expected.even &&
           has_ranks(job->plan, sums, &expected) &&
           memcmp(expected.kinds, sums->kinds, sizeof(sums->kinds)) == 0;
}

static void test_random_jobs(void)
{
    static struct plan plan;
    static struct job job;
    int wrong = 0;

    for (int i = 0; i < 150; i++) {
        static const int sizes[] = {1, 2, 3, 4, 7, 16, 63};
        int size = sizes[draw(sizeof(sizes) / sizeof(sizes[0]))];

        make_plan(&plan, size, i % 10 == 0 ? 0 : (int)draw(MOST_BATCHES));
        start_job(&job, &plan);
        run_job(&job, -1);
        if (!is_right(&job)) {
            tap_note("job %d: %d ranks, %d batches, joined at %d", i, size, plan.count,
                     plan.joins_at);
            wrong++;
        }
        end_job(&job);
    }
    tap_ok(wrong == 0, "in random jobs every rank's sums are what one sees at once");
}

/* --- single promises --------------------------------------------------------------------- */

/* One batch of the first lane that a rank has waited for; batches are 1 ms apart. */
static void note(struct hvd_lateness *lateness, enum hvd_kind kind, int64_t wait_us,
                 int number)
{
    int64_t ended_ns = 100000000000000 + 1000000LL * number;
    const struct hvd_lateness_batch batch = {
        .kind = kind,
        .submitted_ns = ended_ns - wait_us * 1000,
        .started_ns = ended_ns - wait_us * 1000,
        .ended_ns = ended_ns,
    };

    hvd_lateness_note(lateness, &batch);
}

static int hand_up(struct hvd_lateness *from, struct hvd_lateness *to)
{
    const void *payload;
    size_t bytes;
    int count = 0;

    while (hvd_lateness_take(from, &payload, &bytes)) {
        hvd_lateness_merge(to, payload, bytes);
        count++;
    }
    return count;
}

static void create_pair(struct hvd_lateness *pair[2])
{
    hvd_lateness_create(0, 2, 1, &pair[0], NULL);
    hvd_lateness_create(1, 2, 0, &pair[1], NULL);
}

static void destroy_pair(struct hvd_lateness *pair[2])
{
    hvd_lateness_destroy(pair[0]);
    hvd_lateness_destroy(pair[1]);
}

static void test_failed_job(void)
{
    const struct hvd_lateness_sums *sums;
    struct hvd_lateness *pair[2];

    create_pair(pair);
    for (int i = 0; i < HVD_LATENESS_WINDOW + 10; i++) {
        note(pair[0], HVD_KIND_ALLREDUCE, 200, i);
        note(pair[1], HVD_KIND_ALLREDUCE, 100, i);
    }
    tap_ok(hand_up(pair[1], pair[0]) == 1, "a full window goes up at once");
    sums = hvd_lateness_sums(pair[0]);
    tap_ok(!sums->is_complete && sums->compared == HVD_LATENESS_WINDOW &&
               sums->ranks[1].last == HVD_LATENESS_WINDOW &&
               sums->ranks[1].most_late_us == 100 &&
               sums->ranks[0].waited_us == 100 * HVD_LATENESS_WINDOW,
           "without the end of the job there is what was sent, and it is not complete");
    hvd_lateness_close(pair[0]);
    tap_ok(!hvd_lateness_sums(pair[0])->is_complete, "nor when only rank 0 has closed");
    hvd_lateness_close(pair[1]);
    hand_up(pair[1], pair[0]);
    tap_ok(hvd_lateness_sums(pair[0])->is_complete &&
               hvd_lateness_sums(pair[0])->compared == HVD_LATENESS_WINDOW + 10,
           "it is when all have");
    destroy_pair(pair);
}

static void test_not_compared(void)
{
    const struct hvd_lateness_sums *sums;
    struct hvd_lateness *pair[2];

    create_pair(pair);
    for (int i = 0; i < 2; i++) {
        const struct hvd_lateness_batch other = {
            .kind = HVD_KIND_ALLREDUCE, .lane = -1, .bytes = 7, .ended_ns = 1000 * i};

        note(pair[i], HVD_KIND_BROADCAST, 1 + 100 * i, 0);
        hvd_lateness_note(pair[i], &other);
        hvd_lateness_close(pair[i]);
    }
    hand_up(pair[1], pair[0]);
    sums = hvd_lateness_sums(pair[0]);
    tap_ok(sums->is_complete && sums->compared == 0 && sums->ranks[0].last == 0 &&
               sums->ranks[1].waited_us == 0,
           "a broadcast's root and another process set's ranks are not called late");
    tap_ok(sums->kinds[HVD_KIND_BROADCAST].batches == 2 &&
               sums->kinds[HVD_KIND_ALLREDUCE].bytes == 14,
           "but what they did is added up");
    destroy_pair(pair);
}

/* Ten batches are submitted at once, by rank 1 half a second later. */
static void test_late_once(void)
{
    const struct hvd_lateness_sums *sums;
    struct hvd_lateness *pair[2];

    create_pair(pair);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 10; i++) {
            const struct hvd_lateness_batch batch = {
                .kind = HVD_KIND_ALLREDUCE,
                .lane = 1,
                .submitted_ns = 1000 + 500000000LL * r,
                .started_ns = 500001000 + 3000000LL * i,
                .ended_ns = 500001000 + 3000000LL * (i + 1),
            };

            hvd_lateness_note(pair[r], &batch);
        }
        hvd_lateness_close(pair[r]);
    }
    hand_up(pair[1], pair[0]);
    sums = hvd_lateness_sums(pair[0]);
    tap_ok(sums->ranks[1].last == 1 && sums->ranks[1].late_us == 500000 &&
               sums->ranks[0].waited_us == 500000 && sums->even == 9,
           "who is late once is late once, however many batches waited");
    tap_ok(sums->kinds[HVD_KIND_ALLREDUCE].run_ns == 2 * 30000000,
           "and the batches took as long as they did without the waiting");
    destroy_pair(pair);
}

static void test_silent_child(void)
{
    struct hvd_lateness *pair[2];

    create_pair(pair);
    for (int i = 0; i < 1000 * HVD_LATENESS_WINDOW; i++) {
        note(pair[0], HVD_KIND_ALLREDUCE, 10, i);
    }
    hvd_lateness_close(pair[0]);
    for (int i = 0; i < 300 * HVD_LATENESS_WINDOW; i++) {
        note(pair[1], HVD_KIND_ALLREDUCE, 5, i);
    }
    hand_up(pair[1], pair[0]);
    tap_ok(!hvd_lateness_sums(pair[0])->is_complete &&
               hvd_lateness_sums(pair[0])->compared == 256 * HVD_LATENESS_WINDOW,
           "who is silent for long makes the report incomplete, not ever larger");
    destroy_pair(pair);
}

static void test_long_waits(void)
{
    const int64_t day_us = 24LL * 3600 * 1000000;
    const struct hvd_lateness_sums *sums;
    struct hvd_lateness *pair[2];

    create_pair(pair);
    note(pair[0], HVD_KIND_BARRIER, day_us, 0);
    note(pair[1], HVD_KIND_BARRIER, 5, 0);
    hvd_lateness_close(pair[0]);
    hvd_lateness_close(pair[1]);
    hand_up(pair[1], pair[0]);
    sums = hvd_lateness_sums(pair[0]);
    tap_ok(sums->ranks[1].last == 1 && sums->ranks[1].late_us > 4000000000,
           "a wait beyond all measure is still the longer one");
    destroy_pair(pair);
}

/* Returns whether the message was taken; then it is counted to the end. */
static bool is_taken(const void *payload, size_t bytes)
{
    struct hvd_lateness *lateness;
    bool taken;

    hvd_lateness_create(0, 2, 1, &lateness, NULL);
    taken = hvd_lateness_merge(lateness, payload, bytes) == 0;
    for (int i = 0; i < 20; i++) {
        note(lateness, HVD_KIND_ALLREDUCE, 9, i);
    }
    hvd_lateness_close(lateness);
    hvd_lateness_destroy(lateness);
    return taken;
}

static void test_bad_messages(void)
{
    struct hvd_lateness *pair[2];
    char *copy;
    const void *payload;
    size_t bytes;
    int taken = 0;

    create_pair(pair);
    for (int i = 0; i < 20; i++) {
        note(pair[1], HVD_KIND_ALLREDUCE, 5, i);
    }
    hvd_lateness_close(pair[1]);
    hvd_lateness_take(pair[1], &payload, &bytes);
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
    tap_ok(taken < 50000, "%d of 50000 damaged messages are taken, without harm", taken);
    free(copy);
    destroy_pair(pair);
}

int main(void)
{
    random_state = tap_seed(20261122);
    test_random_jobs();
    test_failed_job();
    test_not_compared();
    test_late_once();
    test_silent_child();
    test_long_waits();
    test_bad_messages();
    return tap_done();
}
