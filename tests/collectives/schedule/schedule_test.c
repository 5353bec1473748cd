/* SPDX-License-Identifier: Apache-2.0 */
/* Runs schedules of random collectives on random layouts, with randomly chosen
 * algorithms, in the simulator. Results must have the same bits with every choice. */
#include "collectives/schedule/schedule.h"

#include <string.h>
#include <time.h>

#include "tests/collectives/schedule/schedule_jobs.h"
#include "tests/collectives/schedule/sim.h"
#include "tests/tap.h"

enum {
    MOST_JOBS = 3,
    MOST_RANKS = 40,
    MOST_NODES = 12,
    COLLECTIVES = HVD_COLL_ALLTOALL + 1,
};

/* The kind of random layouts that a test uses. */
struct crowd {
    int ranks; /* the most ranks */
    int nodes; /* the most nodes */
    /* each rank has a node of its own; the number of ranks is at most 15 less than
     * `ranks` */
    bool is_lone;
};

static const struct crowd usual = {MOST_RANKS, MOST_NODES, false};
static const struct crowd on_one_node = {9, 1, false};
static const struct crowd of_two = {2, 2, false};
static const struct crowd on_many_nodes = {MOST_RANKS, MOST_RANKS, false};
static const struct crowd on_three_levels = {150, 150, true};

struct algorithm {
    const char *name;
    int seen;
};

static struct algorithm algorithms[] = {
    {"ll", 0},   {"one_shot", 0}, {"two_shot", 0}, {"cma_reduce", 0},
    {"pair", 0}, {"linear", 0},   {"direct", 0},   {"multilevel", 0},
    {"cico", 0}, {"rolling", 0},  {"cma_read", 0}, {"cma_write", 0},
    {"tree", 0}, {"ring", 0},     {"pairwise", 0},
};

static void count_algorithm(const struct hvd_schedule *schedule)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        if (strcmp(hvd_schedule_facts(schedule)->name, algorithms[i].name) == 0) {
            algorithms[i].seen++;
        }
    }
}

static void describe(const struct hvd_layout *layout, const struct hvd_geometry *geometry,
                     const struct sim_job *job)
{
    const struct hvd_schedule_query *query = &job->queries[0];

    tap_note("%s, %d ranks on %d nodes, %d slots of %zu bytes, recv %zu",
             hvd_schedule_facts(job->schedules[0])->name, layout->size, layout->nodes,
             geometry->slots, geometry->slot_bytes, geometry->recv_bytes);
    tap_note("collective %d, count %lld of %s, bytes %lld from %d, max_block %lld",
             (int)query->collective, (long long)query->count, hvd_dtype_name(job->dtype),
             (long long)query->bytes, query->root, (long long)query->max_block);
}

/* Runs the jobs one after the other; sometimes runs each schedule twice in a row. */
static bool runs_jobs(const struct hvd_layout *layout,
                      const struct hvd_geometry *geometry, const struct sim_job *jobs,
                      int count, uint64_t *random)
{
    struct sim_options options = {(enum sim_mood)jobs_random_below(random, SIM_MOODS),
                                  jobs_random_below(random, 2) == 0, *random};
    int repeats = jobs_random_below(random, 3) == 0 ? 2 : 1;
    struct sim_job all[2 * MOST_JOBS];

    for (int i = 0; i < count * repeats; i++) {
        all[i] = jobs[i / repeats];
    }
    return sim_run(layout, geometry, all, count * repeats, &options);
}

/* Makes up to MOST_JOBS jobs, alternating between two collectives; runs them and checks
 * their results. */
static bool runs_once(const enum hvd_collective kinds[2], const struct crowd *crowd,
                      uint64_t seed)
{
    uint64_t random = seed * 2 + 1;
    struct sim_job jobs[MOST_JOBS] = {0};
    int count = 1 + (int)jobs_random_below(&random, MOST_JOBS);
    struct hvd_geometry geometry;
    struct hvd_layout layout;
    bool is_right = true;
    int made;

    if (crowd->is_lone) {
        jobs_lone_layout(crowd->ranks - (int)jobs_random_below(&random, 16), &layout);
    } else {
        jobs_random_layout(&random, crowd->ranks, crowd->nodes, &layout);
    }
    geometry = jobs_random_geometry(&random, &layout);
    for (made = 0; made < count && is_right; made++) {
        is_right =
            jobs_make(&random, kinds[made % 2], &layout, &geometry, &jobs[made]) == 0;
    }
    is_right = is_right && runs_jobs(&layout, &geometry, jobs, count, &random);
    for (int i = 0; i < made; i++) {
        if (is_right) {
            count_algorithm(jobs[i].schedules[0]);
            is_right = jobs_are_right(&layout, &jobs[i]);
        }
        if (!is_right) {
            describe(&layout, &geometry, &jobs[i]);
        }
        jobs_finish(&layout, &jobs[i]);
    }
    hvd_layout_finish(&layout);
    return is_right;
}

static bool runs_both(const enum hvd_collective kinds[2], const struct crowd *crowd,
                      int trials, unsigned seed)
{
    for (int trial = 0; trial < trials; trial++) {
        uint64_t own = (uint64_t)seed * 1000 + (uint64_t)trial + 1;

        if (!runs_once(kinds, crowd, own * 0x9e3779b97f4a7c15u >> 2)) {
            tap_note("trial %d", trial);
            return false;
        }
    }
    return true;
}

static bool runs(enum hvd_collective collective, const struct crowd *crowd, int trials,
                 unsigned seed)
{
    const enum hvd_collective kinds[2] = {collective, collective};

    return runs_both(kinds, crowd, trials, seed);
}

static bool runs_every_pair(const struct crowd *crowd, int trials, unsigned seed)
{
    for (int pair = 0; pair < COLLECTIVES * COLLECTIVES; pair++) {
        const enum hvd_collective kinds[2] = {(enum hvd_collective)(pair / COLLECTIVES),
                                              (enum hvd_collective)(pair % COLLECTIVES)};

        if (!runs_both(kinds, crowd, trials, seed + (unsigned)pair)) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    tap_ok(runs(HVD_COLL_ALLREDUCE, &usual, 150, seed), "allreduce on random layouts");
    tap_ok(runs(HVD_COLL_REDUCESCATTER, &usual, 80, seed),
           "reducescatter on random layouts");
    tap_ok(runs(HVD_COLL_ALLREDUCE, &of_two, 100, seed), "allreduce of one or two ranks");
    tap_ok(runs(HVD_COLL_REDUCESCATTER, &of_two, 100, seed),
           "reducescatter of one or two ranks");
    tap_ok(runs(HVD_COLL_ALLREDUCE, &on_many_nodes, 60, seed), "allreduce on many nodes");
    tap_ok(runs(HVD_COLL_REDUCESCATTER, &on_many_nodes, 30, seed),
           "reducescatter on many nodes");
    tap_ok(runs(HVD_COLL_ALLREDUCE, &on_three_levels, 4, seed),
           "allreduce on a grid of three levels");
    tap_ok(runs(HVD_COLL_BROADCAST, &usual, 100, seed), "broadcast on random layouts");
    tap_ok(runs(HVD_COLL_ALLGATHER, &usual, 100, seed), "allgather on random layouts");
    tap_ok(runs(HVD_COLL_ALLTOALL, &usual, 100, seed), "alltoall on random layouts");
    tap_ok(runs_every_pair(&usual, 12, seed), "every collective after every other one");
    tap_ok(runs_every_pair(&on_one_node, 20, seed),
           "every collective after every other one, on one node");
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        tap_ok(algorithms[i].seen > 0, "%s was chosen %d times", algorithms[i].name,
               algorithms[i].seen);
    }
    return tap_done();
}
