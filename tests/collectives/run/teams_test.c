/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of teams that run side by side in real processes: every set gets its own results
 * in any layout, a team that waits or is busy does not delay others, and sets are added
 * and removed without using up memory. */
#include "collectives/run/teams.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "tests/collectives/run/teams_rank.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000
};

struct set {
    int id; /* 0: the global set */
    int ranks[4];
    int size;
};

static const struct set sets[] = {
    {0, {0, 1, 2, 3}, 4}, {1, {0, 2}, 2},    {2, {1, 3}, 2},
    {3, {1}, 1},          {4, {0, 1, 2}, 3}, {5, {0, 1, 2, 3}, 4},
};

enum {
    SETS = sizeof(sets) / sizeof(sets[0]),
    ROUNDS = 12
};

static bool is_in(const struct set *set, int rank)
{
    for (int i = 0; i < set->size; i++) {
        if (set->ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

/* Returns a random call of a set, the same on all its ranks. */
static struct team_call random_call(const struct set *set, unsigned seed)
{
    static const enum hvd_kind kinds[] = {HVD_KIND_ALLREDUCE,     HVD_KIND_ALLGATHER,
                                          HVD_KIND_BROADCAST,     HVD_KIND_ALLTOALL,
                                          HVD_KIND_REDUCESCATTER, HVD_KIND_BARRIER};
    unsigned number = seed * 2654435761u ^ (unsigned)set->id * 40503u;
    struct team_call call = {.set = set->id,
                             .op = HVD_SUM,
                             .ranks = set->ranks,
                             .size = set->size,
                             .seed = number % 1009,
                             .absent = -1};

    call.kind = kinds[(number >> 4) % 6];
    call.count = (number >> 8) % 5000;
    call.root = set->ranks[(number >> 12) % (unsigned)set->size];
    call.priority = set->id == 0 ? (number >> 16) % HVD_PRIORITIES : 0;
    if (call.kind == HVD_KIND_ALLREDUCE || call.kind == HVD_KIND_REDUCESCATTER) {
        call.op = (number >> 20) % 2 == 0 ? HVD_SUM : HVD_AVERAGE;
    }
    if (call.kind == HVD_KIND_ALLREDUCE && (number >> 21) % 3 == 0) {
        call.absent = set->ranks[(number >> 24) % (unsigned)set->size];
    }
    return call;
}

static int call_in_all_sets(struct job_rank *self, const void *argument)
{
    unsigned seed = *(const unsigned *)argument;
    struct teams_rank rank;
    int submitted = 0;
    bool is_done;

    teams_rank_join(&rank, self);
    for (int i = 1; i < SETS; i++) {
        teams_rank_add(&rank, sets[i].id, sets[i].ranks, sets[i].size);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < SETS; i++) {
            /* Each rank visits the sets in an order of its own. */
            const struct set *set = &sets[(i + (unsigned)self->boot.rank) % SETS];
            struct team_call call = random_call(set, seed + round);

            if (is_in(set, self->boot.rank)) {
                teams_rank_submit(&rank, &call);
                submitted++;
            }
            teams_rank_turn(&rank);
        }
    }
    is_done = teams_rank_run(&rank, submitted) && hvd_teams_are_idle(rank.teams);
    teams_rank_leave(&rank);
    return !is_done ? 2 : rank.wrong > 0 ? 3 : 0;
}

static bool run_job(const char *hosts, job_body body, const void *argument)
{
    struct job job;
    bool is_good;

    teams_job_open(hosts);
    job_start(&job, hosts, body, argument);
    if (strchr(hosts, 'b') != NULL) {
        net_rank_serve_connect(&job);
    }
    job_serve_exchange(&job);
    is_good = job_finish(&job);
    teams_job_close();
    return is_good;
}

static void sets_get_what_is_theirs(const char *hosts, unsigned seed)
{
    tap_ok(run_job(hosts, call_in_all_sets, &seed),
           "ranks on %s: overlapping sets that run side by side get the right results",
           hosts);
}

static struct team_call sum_of(const struct set *set, int64_t count)
{
    return (struct team_call){.kind = HVD_KIND_ALLREDUCE,
                              .op = HVD_SUM,
                              .set = set->id,
                              .count = count,
                              .ranks = set->ranks,
                              .size = set->size,
                              .absent = -1};
}

/* Makes rank 1 join the first set's batch only after the second set has finished. */
static int be_late(struct job_rank *self, const void *argument)
{
    static const struct set pair[] = {{1, {0, 1}, 2}, {2, {0, 1}, 2}};
    struct team_call stuck = sum_of(&pair[0], 5000);
    struct team_call other = sum_of(&pair[1], 5000);
    struct teams_rank rank;
    bool passed;

    (void)argument;
    teams_rank_join(&rank, self);
    for (int i = 0; i < 2; i++) {
        teams_rank_add(&rank, pair[i].id, pair[i].ranks, pair[i].size);
    }
    if (self->boot.rank == 0) {
        teams_rank_submit(&rank, &stuck);
    }
    for (int i = 0; i < 20; i++) {
        teams_rank_submit(&rank, &other);
    }
    passed = teams_rank_run(&rank, 20) && rank.last.set == other.set;
    teams_rank_submit(&rank, &other); /* ends when rank 0 submits it, too */
    if (self->boot.rank == 1) {
        passed = teams_rank_run(&rank, 21) && passed;
        teams_rank_submit(&rank, &stuck);
    }
    passed = teams_rank_run(&rank, 22) && passed;
    teams_rank_leave(&rank);
    return passed && rank.wrong == 0 ? 0 : 2;
}

/* Submits small batches while a large one runs. */
static int be_long(struct job_rank *self, const void *argument)
{
    const struct set all = {0, {0, 1}, self->boot.size};
    struct team_call large = sum_of(&all, 4 << 20);
    struct team_call small = sum_of(&all, 2000);
    struct teams_rank rank;
    bool was_under_way = false;
    bool passed;

    (void)argument;
    large.priority = HVD_PRIORITY_BULK;
    small.priority = HVD_PRIORITY_QUICK;
    teams_rank_join(&rank, self);
    teams_rank_submit(&rank, &large);
    for (int64_t end_ms = hvd_clock_ms() + WAIT_MS;
         !was_under_way && hvd_clock_ms() < end_ms;) {
        was_under_way = teams_rank_turn(&rank) && rank.ended == 0;
    }
    for (int i = 0; i < 20; i++) {
        teams_rank_submit(&rank, &small);
    }
    passed = was_under_way && teams_rank_run(&rank, 20) && rank.ended == 20 &&
             rank.last.priority == HVD_PRIORITY_QUICK;
    passed =
        teams_rank_run(&rank, 21) && rank.last.priority == HVD_PRIORITY_BULK && passed;
    teams_rank_leave(&rank);
    return passed && rank.wrong == 0 ? 0 : 2;
}

static long long memory_bytes(void)
{
    struct stat status = {0};

    fstat(teams_job_memory(), &status);
    return (long long)status.st_blocks * 512;
}

/* Adds, uses and removes sets; the ranks do not wait for each other in between. */
static int come_and_go(struct job_rank *self, const void *argument)
{
    unsigned seed = *(const unsigned *)argument;
    struct teams_rank rank;
    long long before = 0;
    int submitted = 0;
    bool is_done = true;

    teams_rank_join(&rank, self);
    for (int i = 0; i < 400 && is_done; i++) {
        struct set set = sets[1 + i % (SETS - 1)];
        struct team_call call;

        set.id = 1 + i;
        call = random_call(&set, seed + (unsigned)i);
        if (i == 2 * SETS) {
            before = memory_bytes();
        }
        teams_rank_add(&rank, set.id, set.ranks, set.size);
        if (is_in(&set, self->boot.rank)) {
            teams_rank_submit(&rank, &call);
            submitted++;
        }
        is_done = teams_rank_run(&rank, submitted);
        teams_rank_remove(&rank, set.id);
    }
    is_done = is_done && memory_bytes() == before;
    teams_rank_leave(&rank);
    return !is_done ? 2 : rank.wrong > 0 ? 3 : 0;
}

static int give_up(struct job_rank *self, const void *argument)
{
    static const struct set all = {0, {0, 1}, 2};
    struct team_call call = sum_of(&all, 100000);
    struct teams_rank rank;
    struct hvd_batch *batch;
    bool moved = false;
    int taken = 0;

    (void)argument;
    teams_rank_join(&rank, self);
    teams_rank_submit(&rank, &call); /* connects the ranks */
    teams_rank_run(&rank, 1);
    for (int i = 0; i < 9; i++) {
        call.priority = (enum hvd_priority)(i % HVD_PRIORITIES);
        teams_rank_submit(&rank, &call);
    }
    teams_rank_turn(&rank);
    taken = rank.ended - 1;
    while ((batch = hvd_teams_take_batch(rank.teams, false)) != NULL) {
        team_call_end(batch);
        taken++;
    }
    hvd_teams_progress(rank.teams, NULL, NULL, &moved);
    for (int64_t end_ms = hvd_clock_ms() + 100; hvd_clock_ms() < end_ms;) {
        if (rank.net != NULL) {
            hvd_net_progress(rank.net, NULL);
        }
    }
    teams_rank_leave(&rank);
    return taken == 9 && !moved ? 0 : 2;
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)hvd_clock_ms());

    sets_get_what_is_theirs("a a a a", seed);
    sets_get_what_is_theirs("a a b b", seed);
    sets_get_what_is_theirs("a a a b", seed);
    sets_get_what_is_theirs("a b a b", seed);
    tap_ok(run_job("a a", be_late, NULL),
           "one node: a team that waits for a rank does not delay other teams");
    tap_ok(run_job("a b", be_late, NULL),
           "two nodes: a team that waits for a rank does not delay other teams");
    tap_ok(run_job("a", be_long, NULL),
           "a long batch yields to others even if it never has to wait");
    tap_ok(run_job("a a", be_long, NULL),
           "one node: small batches end while a large one runs");
    tap_ok(run_job("a b", be_long, NULL),
           "two nodes: small batches end while a large one runs");
    tap_ok(run_job("a a a a", come_and_go, &seed),
           "one node: 400 sets are added and removed; results are right, memory does not "
           "grow");
    tap_ok(run_job("a a b b", come_and_go, &seed),
           "two nodes: 400 sets are added and removed; results are right, memory does "
           "not grow");
    tap_ok(run_job("a a", give_up, NULL),
           "one node: after a failure all batches are handed back and nothing runs");
    tap_ok(run_job("a b", give_up, NULL),
           "two nodes: after a failure, messages that arrive later change no tensor");
    return tap_done();
}
