/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates random jobs, with all ranks in one process: the sums in rank 0's straggler
 * report must be equal to those computed from the plan of the job. */
#include "collectives/trace/straggler_waits.h"

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

/* The plan of a job. Times are in microseconds since it began. */
struct plan {
    int size;
    int fanout;
    int count;
    int joins_at; /* the highest rank has joined from this batch on; count: never */
    struct hvd_straggler_batch batches[MOST_BATCHES];
    int64_t came_us[MOST_BATCHES][MOST_RANKS];
    int64_t started_us[MOST_BATCHES];
    int64_t ended_us[MOST_BATCHES];
    int64_t clock_ns[MOST_RANKS]; /* each rank's clock when the job begins */
};

struct job {
    const struct plan *plan;
    struct hvd_straggler_waits *ranks[MOST_RANKS];
    /* messages on their way to the rank's parent, in order */
    struct letter *mail[MOST_RANKS];
    /* number of the batch from which each queue goes on; [0]: batches outside of the
     * queues */
    int next[MOST_RANKS][HVD_STRAGGLER_PRIORITIES + 1];
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

static bool is_compared(const struct hvd_straggler_batch *batch)
{
    return batch->priority >= 0 && !hvd_kind_has_root(batch->kind) &&
           batch->kind != HVD_KIND_JOIN;
}

static bool has_joined(const struct plan *plan, int batch, int rank)
{
    return batch >= plan->joins_at && rank == plan->size - 1;
}

/* Plans a batch: it starts when all ranks have submitted it and its queue is free. Ranks
 * submit several batches ahead, but not beyond a join. */
static void make_times(struct plan *plan, int b, int64_t *now_us, int64_t *free_us)
{
    int64_t pause_us = b == plan->joins_at ? 1000000000 : draw(4) == 0 ? 100000 : 300;
    int64_t began_us = *now_us + pause_us;
    int64_t *priority_free_us = &free_us[plan->batches[b].priority + 1];

    plan->started_us[b] = *priority_free_us;
    for (int r = 0; r < plan->size; r++) {
        plan->came_us[b][r] = began_us + draw(draw(2) == 0 ? 4 : 50000);
        if (!has_joined(plan, b, r) && plan->came_us[b][r] > plan->started_us[b]) {
            plan->started_us[b] = plan->came_us[b][r];
        }
    }
    plan->ended_us[b] = plan->started_us[b] + 1 + draw(20000);
    *priority_free_us = plan->ended_us[b];
    *now_us = began_us;
}

static void make_plan(struct plan *plan, int size, int count)
{
    int64_t free_us[HVD_STRAGGLER_PRIORITIES + 1] = {0};
    int64_t now_us = 0;

    plan->size = size;
    plan->fanout = 1 + (int)draw(8);
    plan->count = count;
    plan->joins_at = draw(2) == 0 || size == 1 ? count : (int)draw((unsigned)count + 1);
    for (int r = 0; r < size; r++) {
        plan->clock_ns[r] = 1000000000LL * draw(1000000) + draw(1000000);
    }
    for (int b = 0; b < count; b++) {
        plan->batches[b] = (struct hvd_straggler_batch){
            .kind = (enum hvd_kind)draw(HVD_STRAGGLER_KINDS),
            .priority = (int)draw(HVD_STRAGGLER_PRIORITIES + 1) - 1,
            .tensors = 1 + draw(5),
            .bytes = draw(100000),
        };
        if (b >= plan->joins_at && !is_compared(&plan->batches[b])) {
            /* the ranks would not agree on a broadcast after a join */
            plan->batches[b].kind = HVD_KIND_ALLREDUCE;
        }
        make_times(plan, b, &now_us, free_us);
    }
}

static struct hvd_straggler_batch batch_of(const struct plan *plan, int batch, int rank)
{
    struct hvd_straggler_batch own = plan->batches[batch];
    int64_t clock_ns = plan->clock_ns[rank];

    own.submitted_ns =
        has_joined(plan, batch, rank) ? 0 : clock_ns + plan->came_us[batch][rank] * 1000;
    own.started_ns = clock_ns + plan->started_us[batch] * 1000;
    own.ended_ns = clock_ns + plan->ended_us[batch] * 1000;
    return own;
}

/* --- the job --- */

static void post(struct job *job, int rank)
{
    struct letter **end = &job->mail[rank];
    const void *payload;
    size_t bytes;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    while (hvd_straggler_waits_take(job->ranks[rank], &payload, &bytes)) {
        *end = malloc(sizeof(**end) + bytes);
        (*end)->next = NULL;
        (*end)->bytes = bytes;
        memcpy((*end)->payload, payload, bytes);
        end = &(*end)->next;
    }
}

/* Runs the next batch of the queue with this priority, or outside of all queues if it is
 * -1; returns false if there is none. */
static bool run_one(struct job *job, int rank, int priority)
{
    int *next = &job->next[rank][priority + 1];

    while (*next < job->plan->count) {
        int batch = (*next)++;

        if (job->plan->batches[batch].priority == priority) {
            struct hvd_straggler_batch own = batch_of(job->plan, batch, rank);

            hvd_straggler_waits_note(job->ranks[rank], &own);
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
    if (hvd_straggler_waits_merge(job->ranks[parent], letter->payload, letter->bytes) !=
        0) {
        tap_ok(false, "a message that a rank has sent is accepted");
    }
    free(letter);
    post(job, parent);
    return true;
}

static bool is_finished(const struct job *job, int rank)
{
    for (int i = 0; i <= HVD_STRAGGLER_PRIORITIES; i++) {
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
        hvd_straggler_waits_create(r, plan->size, children_of(plan, r), &job->ranks[r],
                                   NULL);
    }
}

static void end_job(struct job *job)
{
    for (int r = 0; r < job->plan->size; r++) {
        hvd_straggler_waits_destroy(job->ranks[r]);
        while (job->mail[r] != NULL) {
            struct letter *letter = job->mail[r];

            job->mail[r] = letter->next;
            free(letter);
        }
    }
}

/* Runs some batches of one rank, and delivers one message. Returns whether anything
 * happened. */
static bool turn(struct job *job)
{
    int rank = (int)draw((unsigned)job->plan->size);
    bool moved = false;

    for (unsigned k = draw(200); k > 0; k--) {
        moved |= run_one(job, rank, (int)draw(HVD_STRAGGLER_PRIORITIES + 1) - 1);
    }
    if (is_finished(job, rank) && !job->is_closed[rank]) {
        hvd_straggler_waits_close(job->ranks[rank]);
        job->is_closed[rank] = true;
        moved = true;
    }
    post(job, rank);
    moved |= deliver(job, (int)draw((unsigned)job->plan->size));
    return moved;
}

/* Runs the job: some ranks are ahead, queues overtake each other, and messages are late,
 * at random. */
static void run_job(struct job *job)
{
    for (int quiet = 0; quiet < 5000; quiet++) {
        quiet = turn(job) ? 0 : quiet;
    }
}

/* --- the expected sums --- */

struct expected {
    int64_t compared;
    int64_t even;
    struct hvd_straggler_rank ranks[MOST_RANKS];
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS];
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Adds a batch to the expected sums. A rank arrives when it has submitted the batch, but
 * not before the queue is free. All ranks wait for the last one; its lateness is how long
 * the second to last waits. */
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
        struct hvd_straggler_rank *late = &expected->ranks[last];

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
    int64_t free_us[HVD_STRAGGLER_PRIORITIES] = {0};

    memset(expected, 0, sizeof(*expected));
    for (int b = 0; b < plan->count; b++) {
        const struct hvd_straggler_batch *batch = &plan->batches[b];
        struct hvd_straggler_kind *kind = &expected->kinds[batch->kind];

        kind->batches += plan->size;
        kind->tensors += plan->size * batch->tensors;
        kind->bytes += plan->size * batch->bytes;
        if (is_compared(batch)) {
            expect_compared(plan, b, &free_us[batch->priority], expected);
        } else {
            kind->run_ns += plan->size * (plan->ended_us[b] - plan->started_us[b]) * 1000;
        }
    }
}

static bool has_ranks(const struct plan *plan, const struct hvd_straggler_sums *sums,
                      const struct expected *expected)
{
    for (int r = 0; r < plan->size; r++) {
        const struct hvd_straggler_rank *found = &sums->ranks[r];
        const struct hvd_straggler_rank *right = &expected->ranks[r];

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
    const struct hvd_straggler_sums *sums = hvd_straggler_waits_sums(job->ranks[0]);
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
        run_job(&job);
        if (!is_right(&job)) {
            tap_note("job %d: %d ranks, %d batches, joined at %d", i, size, plan.count,
                     plan.joins_at);
            wrong++;
        }
        end_job(&job);
    }
    tap_ok(wrong == 0, "in random jobs, the sums of every rank are as planned");
}

int main(void)
{
    random_state = tap_seed(20261122);
    test_random_jobs();
    return tap_done();
}
