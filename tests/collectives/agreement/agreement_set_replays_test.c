/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of process sets: steps that repeat need no messages, and sets do not disturb
 * each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/replay.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement_sim/agreement_sim_check.h"
#include "tests/collectives/agreement/agreement_try.h"

enum {
    RANKS = 8,
    TENSORS = 3, /* in each set */
    LEARNING = 12, /* more steps than a replay needs to begin */
    MOST_REQUESTS = 256,
    LAYOUTS = 4,
    SECOND = 1000000000
};

/* Layouts for the sets below. Some sets have rank 0 as a member, some have nodes without
 * members between rank 0 and theirs, and some share a node with other ranks. */
static const int layouts[LAYOUTS][RANKS + 1] = {
    {8, 0}, {4, 4, 0}, {2, 2, 2, 2, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 0}};

enum {
    EARLY = 1, /* numbers of the sets */
    MIDDLE,
    LATE,
    SETS
};
static const char *const membership[SETS] = {
    [EARLY] = "0,1,2,3", [MIDDLE] = "1,3,6", [LATE] = "5,7"};

struct job {
    struct sim sim;
    struct hvd_request *requests[MOST_REQUESTS];
    int count;
};

static void submit(struct job *job, int rank, const struct hvd_descriptor *tensor)
{
    sim_wait(&job->sim, rank, true);
    job->requests[job->count] = sim_submit(&job->sim, rank, &tensor, 1);
    atomic_store(&job->requests[job->count++]->is_asked_for, true);
}

/* Runs the job until nothing happens for patience_ns. By then, all requests must have
 * succeeded. */
static void settle_within(struct job *job, int64_t patience_ns)
{
    sim_finish_requests(&job->sim, job->requests, job->count, patience_ns);
    job->count = 0;
}

static void settle(struct job *job)
{
    settle_within(job, SECOND);
}

static void on_all_ranks(struct job *job, const struct hvd_descriptor *descriptor)
{
    for (int rank = 0; rank < RANKS; rank++) {
        submit(job, rank, descriptor);
    }
    settle(job);
}

static void add_set(struct job *job, const char *ranks)
{
    const struct hvd_descriptor add = {
        .kind = HVD_KIND_SET_ADD, .name = "hvd.add", .note = ranks};

    on_all_ranks(job, &add);
}

static void begin(struct job *job, const int *nodes, int capacity, unsigned seed)
{
    struct hvd_agreement_settings settings = sim_settings();

    settings.fusion.capacity = capacity;
    job->count = 0;
    sim_init(&job->sim, nodes, &settings, seed);
    for (int set = EARLY; set < SETS; set++) {
        add_set(job, membership[set]);
    }
}

static bool is_member(const struct job *job, int set, int rank)
{
    const struct hvd_set *found = hvd_sets_find(&job->sim.ranks[rank].sets, set);

    return found != NULL && found->is_member;
}

/* The members of a set submit the tensors of a step, each with this many elements. */
static void submit_step(struct job *job, int set, int64_t elements)
{
    for (int i = 0; i < TENSORS; i++) {
        char name[16];
        struct hvd_descriptor tensor;

        snprintf(name, sizeof(name), "t%d", i);
        tensor = sim_allreduce(name, elements);
        tensor.set = set;
        for (int rank = 0; rank < RANKS; rank++) {
            if (is_member(job, set, rank)) {
                submit(job, rank, &tensor);
            }
        }
    }
}

static void run_steps(struct job *job, int first_set, int steps)
{
    for (int step = 0; step < steps; step++) {
        for (int set = first_set; set < SETS; set++) {
            submit_step(job, set, 10);
        }
        settle(job);
    }
}

static uint64_t messages(const struct job *job)
{
    uint64_t sum = 0;

    for (int rank = 0; rank < RANKS; rank++) {
        sum += try_counts(&job->sim, rank).received;
    }
    return sum;
}

/* Whether steps of the sets from first_set on are replayed without any message. */
static bool are_silent(struct job *job, int first_set)
{
    uint64_t before = messages(job), replayed = 0;

    for (int rank = 0; rank < RANKS; rank++) {
        replayed += try_counts(&job->sim, rank).replayed;
    }
    run_steps(job, first_set, 5);
    for (int rank = 0; rank < RANKS; rank++) {
        replayed -= try_counts(&job->sim, rank).replayed;
    }
    return messages(job) == before && replayed != 0;
}

/* All members of a set make one request of this kind. */
static void run_one(struct job *job, int set, enum hvd_kind kind)
{
    struct hvd_descriptor tensor = sim_allreduce("other", 4);

    tensor.set = set;
    tensor.kind = kind;
    tensor.root = kind == HVD_KIND_BROADCAST ? 1 : 0;
    for (int rank = 0; rank < RANKS; rank++) {
        if (is_member(job, set, rank)) {
            submit(job, rank, &tensor);
        }
    }
}

/* --- promises for each layout --- */

typedef bool promise_of(struct job *job);

static bool steps_are_silent(struct job *job)
{
    uint64_t before = messages(job);

    run_steps(job, EARLY, LEARNING);
    return messages(job) > before && are_silent(job, EARLY);
}

/* The members of one set describe its tensors anew, while the other sets continue. */
static bool break_is_alone(struct job *job)
{
    struct hvd_agreement_counts before, after;

    run_steps(job, HVD_SET_GLOBAL, 2 * LEARNING);
    before = try_counts(&job->sim, 0);
    for (int set = HVD_SET_GLOBAL; set < SETS; set++) {
        submit_step(job, set, set == EARLY ? 20 : 10);
    }
    settle(job);
    after = try_counts(&job->sim, 0);
    /* the replays of the other sets continue */
    if (after.breaks != before.breaks + 1 || after.replays != before.replays) {
        return false;
    }
    for (int set = HVD_SET_GLOBAL; set < SETS; set++) {
        uint64_t sum = messages(job);

        submit_step(job, set, set == EARLY ? 20 : 10);
        settle(job);
        if ((messages(job) == sum) != (set != EARLY)) {
            return false;
        }
    }
    return true;
}

/* A tensor that is not in the replay of its set waits until the replay has ended, but not
 * longer. */
static bool others_end_a_plan(struct job *job)
{
    struct hvd_agreement_counts before;

    run_steps(job, EARLY, LEARNING);
    before = try_counts(&job->sim, 0);
    run_one(job, MIDDLE, HVD_KIND_BROADCAST);
    submit_step(job, MIDDLE, 10);
    settle(job);
    if (try_counts(&job->sim, 0).breaks != before.breaks + 1) {
        return false;
    }
    run_steps(job, EARLY, 2 * LEARNING);
    return are_silent(job, EARLY);
}

/* In a set that runs an allgather in each step, no replay begins. */
static bool mixed_set_has_no_plan(struct job *job)
{
    for (int step = 0; step < 2 * LEARNING; step++) {
        run_one(job, MIDDLE, HVD_KIND_ALLGATHER);
        submit_step(job, MIDDLE, 10);
        settle(job);
    }
    return try_counts(&job->sim, 0).replays == 0;
}

/* A set is removed while its replay is in force. Another set gets its number and uses the
 * same names. */
static bool number_comes_back(struct job *job)
{
    static const char *const ranks[] = {"2,3,4,5,6", "0,7", "3,4"};

    run_steps(job, EARLY, LEARNING);
    for (int round = 0; round < 3; round++) {
        const struct hvd_descriptor removal = {
            .kind = HVD_KIND_SET_REMOVE, .name = "hvd.remove", .root = MIDDLE};

        submit_step(job, MIDDLE, 10);
        on_all_ranks(job, &removal);
        add_set(job, ranks[round]);
        run_steps(job, EARLY, LEARNING);
        if (!are_silent(job, EARLY)) {
            return false;
        }
    }
    return try_counts(&job->sim, 0).breaks == 3;
}

/* All ranks report the removal of a set while rank 1 still counts a batch of the set as
 * running. Rank 1 must refuse the removal. */
static bool busy_rank_refuses(struct job *job)
{
    const struct hvd_descriptor removal = {
        .kind = HVD_KIND_SET_REMOVE, .name = "hvd.remove", .root = EARLY};
    struct sim_rank *busy = &job->sim.ranks[1];
    bool good;

    for (int rank = 1; rank < RANKS; rank++) {
        submit(job, rank, &removal);
    }
    sim_settle(&job->sim);
    hvd_sets_find(&busy->sets, EARLY)->replay->running++;
    submit(job, 0, &removal);
    sim_settle(&job->sim);
    good = job->sim.fault[0] == '\0' && busy->has_left && busy->gave_up_for == 1 &&
           strstr(busy->reason, "process set 1 is removed while rank 1 on n") != NULL;
    for (int i = 0; i < job->count; i++) {
        good &= sim_has_ended(job->requests[i]) == (i != 0); /* rank 1's does not end */
    }
    hvd_agreement_drop(busy->agreement, true, HVD_ERR_PEER, busy->reason);
    job->sim.fault[0] = '\0'; /* rank 1 ends with another status than all others */
    for (int i = 0; i < job->count; i++) {
        hvd_request_drop(job->requests[i]);
    }
    job->count = 0;
    return good;
}

/* A tensor waits in the replay of one set while the replay of another begins. */
static bool replays_begin_alone(struct job *job)
{
    static const int ranks[] = {0, 1, 2, 3};
    struct hvd_request *early[TENSORS * 4];
    uint64_t breaks;
    int count = 0;

    for (int step = 0; step < LEARNING; step++) {
        submit_step(job, EARLY, 10);
        settle(job);
    }
    for (int i = 0; i < TENSORS * 4; i++) {
        char name[16];
        struct hvd_descriptor tensor;

        snprintf(name, sizeof(name), "t%d", i / 4);
        tensor = sim_allreduce(name, 10);
        tensor.set = EARLY;
        submit(job, ranks[i % 4], &tensor);
        sim_wait(&job->sim, ranks[i % 4], false);
        atomic_store(&job->requests[--job->count]->is_asked_for, false);
        early[count++] = job->requests[job->count];
        for (int step = 0; i == 0 && step < LEARNING; step++) {
            submit_step(job, MIDDLE, 10);
            settle_within(job, 1000000);
        }
    }
    breaks = try_counts(&job->sim, 0).breaks;
    for (int i = 0; i < count; i++) {
        job->requests[job->count++] = early[i];
    }
    settle(job);
    return breaks == 0 && try_counts(&job->sim, 0).breaks == 0 &&
           try_counts(&job->sim, 0).replays == 2;
}

/* In the last step of a set, one member describes a tensor anew. The batch that the
 * others have started is cancelled, and must have ended before the set is removed. */
static bool void_batch_goes_first(struct job *job)
{
    const struct hvd_descriptor removal = {
        .kind = HVD_KIND_SET_REMOVE, .name = "hvd.remove", .root = MIDDLE};

    run_steps(job, EARLY, LEARNING);
    for (int i = 0; i < 3 * TENSORS; i++) {
        static const int ranks[] = {1, 3, 6};
        char name[16];
        struct hvd_descriptor tensor;

        snprintf(name, sizeof(name), "t%d", i % TENSORS);
        tensor = sim_allreduce(name, i / TENSORS == 2 ? 11 : 10);
        tensor.set = MIDDLE;
        submit(job, ranks[i / TENSORS], &tensor);
        for (int j = 0; j < 20 && i / TENSORS < 2; j++) {
            sim_step(&job->sim, 0);
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        submit(job, rank, &removal);
    }
    job->sim.holds_batches = true;
    while (job->sim.fault[0] == '\0' && sim_step(&job->sim, SECOND)) {
    }
    job->sim.holds_batches = false;
    while (job->sim.fault[0] == '\0' && sim_step(&job->sim, SECOND)) {
    }
    for (int i = 0; i < job->count; i++) {
        int wanted = i < 3 * TENSORS ? HVD_ERR_MISMATCH : 0;

        if (atomic_load(&job->requests[i]->status) != wanted) {
            sim_fault(&job->sim, "request %d ends otherwise", i);
        }
        hvd_request_drop(job->requests[i]);
    }
    job->count = 0;
    return job->sim.void_in_sets > 0;
}

/* All ranks join while the replays of sets continue. */
static bool join_breaks_no_set(struct job *job)
{
    const struct hvd_descriptor join = {.kind = HVD_KIND_JOIN, .name = "hvd.join"};
    uint64_t breaks;

    run_steps(job, HVD_SET_GLOBAL, LEARNING);
    breaks = try_counts(&job->sim, 0).breaks;
    for (int rank = 0; rank < RANKS; rank++) {
        submit(job, rank, &join);
    }
    for (int set = EARLY; set < SETS; set++) {
        submit_step(job, set, 10);
    }
    settle(job);
    return try_counts(&job->sim, 0).breaks <= breaks + 1 && are_silent(job, EARLY);
}

/* New settings end all replays, and apply to the next ones. */
static bool settings_end_replays(struct job *job)
{
    uint64_t breaks;

    run_steps(job, HVD_SET_GLOBAL, LEARNING);
    breaks = try_counts(&job->sim, 0).breaks;
    sim_tune(&job->sim, 0, 1000000);
    settle(job);
    if (try_counts(&job->sim, 0).breaks != breaks + SETS) {
        return false;
    }
    run_steps(job, HVD_SET_GLOBAL, LEARNING);
    return are_silent(job, HVD_SET_GLOBAL);
}

/* A tensor of each set that comes after every epoch ends the replays, which begin again
 * after as few steps as before. */
static bool epochs_are_forgiven(struct job *job)
{
    for (int epoch = 0; epoch < 8; epoch++) {
        run_steps(job, EARLY, 40);
        for (int set = EARLY; set < SETS; set++) {
            run_one(job, set, HVD_KIND_ALLREDUCE);
        }
        settle(job);
    }
    run_steps(job, EARLY, LEARNING);
    return are_silent(job, EARLY);
}

/* Rank 0 ends the job while one member's tensors wait in a replay, and others run. */
static bool job_ends(struct job *job)
{
    struct hvd_descriptor tensor = sim_allreduce("t0", 10);

    run_steps(job, HVD_SET_GLOBAL, LEARNING);
    tensor.set = LATE;
    submit(job, 5, &tensor);
    sim_settle(&job->sim);
    sim_leave(&job->sim);
    sim_settle(&job->sim);
    sim_check_rest(&job->sim);
    if (atomic_load(&job->requests[0]->status) != HVD_ERR_SHUTDOWN) {
        return false;
    }
    hvd_request_drop(job->requests[0]);
    job->count = 0;
    return job->sim.ranks[RANKS - 1].has_left;
}

static void try_all(const char *promise, promise_of *holds, int capacity, unsigned seed)
{
    static struct job job;
    bool passed = true;

    for (unsigned i = 0; i < LAYOUTS * 4 && passed; i++) {
        begin(&job, layouts[i % LAYOUTS], capacity, seed + i);
        passed = holds(&job) && job.sim.fault[0] == '\0';
        if (!passed) {
            tap_note("layout %u, seed %u: %s", i % LAYOUTS, seed + i, job.sim.fault);
        }
        sim_finish(&job.sim);
    }
    tap_ok(passed, "%s", promise);
}

/* The replays of all sets together may have half as many tensors as the cache holds:
 * here, those of two sets but not of the third. */
static bool replays_leave_room(struct job *job)
{
    uint64_t before;

    run_steps(job, EARLY, LEARNING);
    before = messages(job);
    run_steps(job, EARLY, 1);
    return messages(job) > before && try_counts(&job->sim, 0).replays == 2;
}

int main(void)
{
    unsigned seed = tap_seed(11);

    hvd_log_to(NULL, HVD_LOG_OFF);
    try_all("steps of process sets that repeat need no messages", steps_are_silent, 1024,
            seed);
    try_all("a replay that breaks leaves those of other sets in force", break_is_alone,
            1024, seed);
    try_all(
        "a tensor that is not part of a set's replay ends the replay, and runs after it",
        others_end_a_plan, 1024, seed);
    try_all("a set with batches that cannot be replayed in each step has no replay",
            mixed_set_has_no_plan, 1024, seed);
    try_all("a replay ends with its set; another set gets the number", number_comes_back,
            1024, seed);
    try_all("a rank that still runs a batch of a removed set ends the job and says why",
            busy_rank_refuses, 1024, seed);
    try_all("a replay that begins does not disturb tensors that wait in another",
            replays_begin_alone, 1024, seed);
    try_all("a set is removed after its team has run its cancelled batches",
            void_batch_goes_first, 1024, seed);
    try_all("a join breaks no replay of another set", join_breaks_no_set, 1024, seed);
    try_all("new settings end all replays", settings_end_replays, 1024, seed);
    try_all("steps of sets are replayed again after each of many epochs",
            epochs_are_forgiven, 1024, seed);
    try_all("a job can end while its sets have replays", job_ends, 1024, seed);
    try_all("replays of sets leave half of the cache to other tensors",
            replays_leave_room, 4 * TENSORS, seed);
    return tap_done();
}
