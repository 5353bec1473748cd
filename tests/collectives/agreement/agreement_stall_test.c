/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait too long: which ranks are named, and for which tensors, and when the
 * job ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/agreement/agreement_try.h"
#include "tests/collectives/logged.h"

enum {
    SECOND = 1000000000
};

static const int four[] = {2, 2, 0};
static const int deep[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};

static const char warning[] =
    "One or more tensors were submitted to be reduced, gathered or broadcasted by subset "
    "of ranks and are waiting for remainder of ranks for more than 60 seconds. This may "
    "indicate that different ranks are trying to submit different tensors or that only "
    "subset of ranks is submitting tensors, which will cause deadlock. \nMissing ranks:";

static struct hvd_agreement_settings patient(void)
{
    struct hvd_agreement_settings settings = sim_settings();

    settings.stall_warning_ns = 60LL * SECOND;
    return settings;
}

/* Submits a tensor for which a thread of the rank waits. */
static struct hvd_request *submit(struct sim *sim, int rank, const char *name, int set)
{
    struct hvd_descriptor tensor = sim_allreduce(name, 10);
    const struct hvd_descriptor *only = &tensor;
    struct hvd_request *request;

    tensor.set = set;
    if (strcmp(name, "hvd.join") == 0) {
        tensor.kind = HVD_KIND_JOIN;
    }
    request = sim_submit(sim, rank, &only, 1);
    atomic_store(&request->is_asked_for, true);
    sim_wait(sim, rank, true);
    return request;
}

static void pass(struct sim *sim, int64_t seconds)
{
    sim_pass(sim, seconds * SECOND);
}

/* Checks the number of warnings, and the ranks that the last one names. */
static void check(const char *promise, int count, const char *missing)
{
    char text[1200] = "";
    bool passed = logged_count(HVD_LOG_WARN) == count;

    if (count > 0) {
        snprintf(text, sizeof(text), "%s%s", warning, missing);
        passed &= logged_ended(HVD_LOG_WARN, text);
    }
    if (!tap_ok(passed, "%s", promise)) {
        logged_show();
    }
}

struct held {
    struct hvd_request *requests[64];
    int count;
};

static void hold(struct held *held, struct sim *sim, int rank, const char *name, int set)
{
    held->requests[held->count++] = submit(sim, rank, name, set);
}

static void let_go(struct held *held, struct sim *sim)
{
    sim_finish(sim);
    for (int i = 0; i < held->count; i++) {
        hvd_request_drop(held->requests[i]);
    }
    *held = (struct held){0};
    logged_begin();
}

static void test_names(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;
    bool all = true;

    sim_init(&sim, four, &settings, seed);
    hold(&held, &sim, 0, "a", 0);
    hold(&held, &sim, 2, "a", 0);
    hold(&held, &sim, 0, "b", 0);
    hold(&held, &sim, 1, "b", 0);
    hold(&held, &sim, 2, "b", 0);
    pass(&sim, 58);
    check("no rank is named before the warning time", 0, NULL);
    pass(&sim, 4);
    check("the ranks that lack a tensor are named, each with its tensors", 1,
          "\n1: [a] (pid 4710 on n0)\n3: [a, b] (pid 4711 on n1)");
    pass(&sim, 50);
    hold(&held, &sim, 1, "a", 0);
    pass(&sim, 12);
    check("after another warning time, the ranks that still lack it are named", 2,
          "\n3: [a, b] (pid 4711 on n1)");
    hold(&held, &sim, 3, "b", 0);
    hold(&held, &sim, 3, "a", 0);
    pass(&sim, 120);
    for (int i = 0; i < held.count; i++) {
        all &= atomic_load(&held.requests[i]->status) == 0;
    }
    check("a rank that was late is no longer named", 2, "\n3: [a, b] (pid 4711 on n1)");
    tap_ok(all && sim.fault[0] == '\0', "the job continues (%s)", sim.fault);
    let_go(&held, &sim);
}

/* Whether rank 0 has got the stacks of these ranks, in any order, and of no others. */
static bool has_stacks(const struct sim *sim, const int *ranks)
{
    size_t bytes = 0;

    for (; *ranks >= 0; ranks++) {
        char number[16];

        bytes += (size_t)snprintf(number, sizeof(number), "%d ", *ranks);
        if (strstr(sim->stacks, number) == NULL) {
            return false;
        }
    }
    return strlen(sim->stacks) == bytes;
}

static void test_stacks(unsigned seed)
{
    static const int first[] = {1, 2, 3, 4, -1}, root[] = {0, -1};
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    settings.asks_for_stacks = true;
    sim_init(&sim, deep, &settings, seed);
    hold(&held, &sim, 0, "a", 0);
    pass(&sim, 62);
    tap_ok(has_stacks(&sim, first) && sim.fault[0] == '\0',
           "the first four late ranks tell where they are: %s%s", sim.stacks, sim.fault);
    let_go(&held, &sim);

    sim_init(&sim, four, &settings, seed);
    hold(&held, &sim, 3, "a", 0);
    hold(&held, &sim, 2, "a", 0);
    hold(&held, &sim, 1, "a", 0);
    pass(&sim, 62);
    tap_ok(has_stacks(&sim, root) && sim.fault[0] == '\0', "so does rank 0: %s%s",
           sim.stacks, sim.fault);
    let_go(&held, &sim);

    sim_init(&sim, four, &settings, seed);
    sim.ranks[2].is_mute = true;
    for (int rank = 0; rank < 4; rank++) {
        if (rank != 2) {
            hold(&held, &sim, rank, "a", 0);
        }
    }
    pass(&sim, 62);
    pass(&sim, 4);
    if (!tap_ok(sim.stacks[0] == '\0' && sim.fault[0] == '\0' &&
                    logged_has(HVD_LOG_WARN,
                               "rank 2 on n1 (pid 4711) has not sent its stack "
                               "within 3 seconds"),
                "a rank that does not tell in time is named %s", sim.fault)) {
        logged_show();
    }
    hold(&held, &sim, 2, "a", 0);
    pass(&sim, 120);
    tap_ok(logged_count(HVD_LOG_WARN) == 2 && sim.fault[0] == '\0',
           "the job continues (%s)", sim.fault);
    let_go(&held, &sim);

    settings.asks_for_stacks = false;
    sim_init(&sim, four, &settings, seed);
    hold(&held, &sim, 0, "a", 0);
    pass(&sim, 62);
    tap_ok(sim.stacks[0] == '\0', "no rank is asked if the job does not want that");
    let_go(&held, &sim);
}

static void test_joined(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    settings.stall_shutdown_ns = 100LL * SECOND;
    sim_init(&sim, four, &settings, seed);
    hold(&held, &sim, 0, "hvd.join", 0);
    hold(&held, &sim, 1, "hvd.join", 0);
    hold(&held, &sim, 3, "hvd.join", 0);
    pass(&sim, 300);
    check("no rank is late for a join", 0, NULL);
    tap_ok(!sim.ranks[0].gave_up, "a join does not end the job");
    let_go(&held, &sim);

    sim_init(&sim, four, &settings, seed);
    hold(&held, &sim, 3, "hvd.join", 0);
    hold(&held, &sim, 1, "a", 0);
    pass(&sim, 62);
    check("a rank that has joined is not named", 1,
          "\n0: [a] (pid 4710 on n0)\n2: [a] (pid 4711 on n1)");
    let_go(&held, &sim);
}

static void add_set(struct sim *sim, const char *ranks)
{
    const struct hvd_descriptor add = {
        .kind = HVD_KIND_SET_ADD, .name = "hvd.set.0", .note = ranks};
    const struct hvd_descriptor *only = &add;
    struct held held = {0};

    for (int r = 0; r < sim->layout.size; r++) {
        held.requests[held.count++] = sim_submit(sim, r, &only, 1);
    }
    pass(sim, 1);
    for (int i = 0; i < held.count; i++) {
        hvd_request_drop(held.requests[i]);
    }
}

static void test_sets(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    add_set(&sim, "1,3");
    hold(&held, &sim, 1, "a", 1);
    pass(&sim, 62);
    check("ranks outside of a process set are not named", 1, "\n3: [a] (pid 4711 on n1)");
    let_go(&held, &sim);
}

/* Ranks 1, 2 and 3 create one set, ranks 0 and 2 another; some have not asked yet. */
static void test_creations(unsigned seed)
{
    static const struct {
        int rank;
        const char *name, *list;
    } asked[] = {{1, "hvd.create.x", "1-3"},
                 {2, "hvd.create.x", "1-3"},
                 {0, "hvd.create.y", "0,2"}};
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    for (int i = 0; i < 3; i++) {
        const struct hvd_descriptor create = {
            .kind = HVD_KIND_SET_CREATE, .name = asked[i].name, .note = asked[i].list};
        const struct hvd_descriptor *only = &create;

        held.requests[held.count++] = sim_submit(&sim, asked[i].rank, &only, 1);
        sim_wait(&sim, asked[i].rank, true);
    }
    pass(&sim, 62);
    check("members that have not asked to create a set are named", 1,
          "\n2: [hvd.create.y] (pid 4711 on n1)\n3: [hvd.create.x] (pid 4711 on n1)");
    let_go(&held, &sim);
}

static void hold_tensors(struct held *held, struct sim *sim, int rank, int set)
{
    for (int i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof(name), "t%d", i);
        hold(held, sim, rank, name, set);
    }
}

/* The ranks of the set submit some tensors; returns when these have ended. */
static void run_step(struct sim *sim, int set)
{
    const struct hvd_set *members = hvd_sets_find(&sim->ranks[0].sets, set);
    struct held held = {0};

    for (int i = 0; i < members->count; i++) {
        hold_tensors(&held, sim, members->ranks[i], set);
    }
    while (!sim_has_ended(held.requests[held.count - 1]) && sim_step(sim, SECOND)) {
    }
    sim_settle(sim);
    for (int i = 0; i < held.count; i++) {
        hvd_request_drop(held.requests[i]);
    }
}

static void test_planned(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    for (int step = 0; step < 8; step++) {
        run_step(&sim, HVD_SET_GLOBAL);
    }
    for (int r = 0; r < 4; r++) {
        if (r != 2) {
            hold_tensors(&held, &sim, r, HVD_SET_GLOBAL);
        }
    }
    pass(&sim, 62);
    tap_ok(try_counts(&sim, 0).replayed > 0, "(the steps are replayed)");
    check("tensors that a replay waits for are named, six for each rank", 1,
          "\n2: [t0, t1, t2, t3, t4, t5 ...] (pid 4711 on n1)");
    let_go(&held, &sim);
}

/* Tensors wait in the replays of two sets. */
static void test_planned_sets(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    add_set(&sim, "1,3");
    add_set(&sim, "0,1,2");
    for (int step = 0; step < 8; step++) {
        run_step(&sim, 1);
        run_step(&sim, 2);
    }
    tap_ok(try_counts(&sim, 0).replays == 2, "(the steps of both sets are replayed)");
    hold_tensors(&held, &sim, 1, 1);
    hold_tensors(&held, &sim, 0, 2);
    pass(&sim, 62);
    check("tensors that the replays of sets wait for are named", 1,
          "\n1: [t0, t1, t2, t3, t4, t5 ...] (pid 4710 on n0)\n2: [t0, t1, t2, t3, t4, "
          "t5 ...] (pid 4711 on n1)"
          "\n3: [t0, t1, t2, t3, t4, t5 ...] (pid 4711 on n1)");
    let_go(&held, &sim);
}

static void test_shutdown(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    settings.stall_shutdown_ns = 100LL * SECOND;
    sim_init(&sim, deep, &settings, seed);
    for (int r = 0; r < 11; r++) {
        if (r != 4 && r != 10) {
            hold(&held, &sim, r, "a", 0);
        }
    }
    pass(&sim, 62);
    check("ranks deep in the tree are named", 1,
          "\n4: [a] (pid 4714 on n4)\n10: [a] (pid 4720 on n10)");
    tap_ok(!sim.ranks[0].gave_up, "the job goes on until the shutdown time");
    pass(&sim, 60);
    check("ranks past the shutdown time are marked", 2,
          "\n4!: [a] (pid 4714 on n4)\n10!: [a] (pid 4720 on n10)");
    tap_ok(sim.ranks[0].gave_up && logged_count(HVD_LOG_ERROR) == 1,
           "past the shutdown time, the job ends with an error");
    let_go(&held, &sim);
}

/* --- ranks that do not answer --- */

static const char silence[] =
    "One or more ranks do not answer, and others wait for them for more than 60 seconds. "
    "Their processes may be stopped, swapped out or starved of cpu. \nSilent ranks:";

/* Checks the silent ranks that the last warning names. */
static void check_silent(const char *promise, const char *ranks)
{
    char text[1024];

    snprintf(text, sizeof(text), "%s%s", silence, ranks);
    if (!tap_ok(logged_ended(HVD_LOG_WARN, text), "%s", promise)) {
        logged_show();
    }
}

/* Lets all ranks but one submit a tensor, and stops the other rank. */
static void freeze(struct held *held, struct sim *sim, int rank)
{
    for (int r = 0; r < sim->layout.size; r++) {
        if (r != rank) {
            hold(held, sim, r, "a", 0);
        }
    }
    sim->ranks[rank].is_frozen = true;
}

static void thaw(struct held *held, struct sim *sim, int rank)
{
    bool all = true;

    sim->ranks[rank].is_frozen = false;
    hold(held, sim, rank, "a", 0);
    pass(sim, 1);
    for (int i = 0; i < held->count; i++) {
        all &= atomic_load(&held->requests[i]->status) == 0;
    }
    tap_ok(all && sim->fault[0] == '\0', "when that rank continues, so does the job (%s)",
           sim->fault);
}

static void test_silent(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    freeze(&held, &sim, 3);
    pass(&sim, 58);
    tap_ok(logged_count(HVD_LOG_WARN) == 0,
           "there is no inquiry before the warning time");
    pass(&sim, 13);
    check_silent(
        "after the warning time, a silent rank is named, with its host and the tensor",
        "\n3: on n1, silent for 10 seconds; ALLREDUCE a waits for 60 seconds");
    tap_ok(logged_count(HVD_LOG_WARN) == 1, "a silent rank is not said to lack tensors");
    pass(&sim, 60);
    check_silent("a silent rank is named again after another warning time",
                 "\n3: on n1, silent for 10 seconds; ALLREDUCE a waits for 120 seconds");
    thaw(&held, &sim, 3);
    let_go(&held, &sim);
}

/* Rank 2 is silent. Rank 0 reaches rank 3 only through it. */
static void test_silent_leader(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    freeze(&held, &sim, 2);
    pass(&sim, 75);
    check_silent("ranks below a silent rank are named",
                 "\n2: on n1, silent for 10 seconds; ALLREDUCE a waits for 60 seconds; "
                 "reached only through it: 3");
    thaw(&held, &sim, 2);
    let_go(&held, &sim);
}

static void check_suspects(struct sim *sim)
{
    char text[512] = "";

    tap_ok(
        hvd_agreement_suspect(sim->ranks[3].agreement, sim->now_ns, text, sizeof(text)) ==
                2 &&
            strstr(text, "rank 0 on n0, or rank 2 on n1 between it and rank 3,") != NULL,
        "a rank whose parent is silent suspects rank 0 or the parent (%s)", text);
    tap_ok(hvd_agreement_suspect(sim->ranks[3].agreement, sim->now_ns - 200LL * SECOND,
                                 text, sizeof(text)) == -1,
           "it suspects no rank before it has waited long enough");
}

/* Rank 0 is silent. Only one of the ranks that share a parent and a node warns. */
static void test_silent_root(unsigned seed)
{
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    settings.stall_shutdown_ns = 200LL * SECOND;
    sim_init(&sim, four, &settings, seed);
    freeze(&held, &sim, 0);
    pass(&sim, 100);
    tap_ok(logged_count(HVD_LOG_WARN) == 0, "rank 0 has time to ask");
    pass(&sim, 30);
    tap_ok(logged_count(HVD_LOG_WARN) == 3 &&
               logged_ended(HVD_LOG_WARN, "ALLREDUCE a has waited for 120 seconds"),
           "when rank 0 does not answer, the others warn");
    pass(&sim, 120);
    tap_ok(sim.ranks[1].gave_up && sim.ranks[1].gave_up_for == 0 &&
               strstr(sim.ranks[2].reason, "rank 0 on n0 does not answer") != NULL,
           "past the shutdown time, each ends its part of the job (%s)", sim.fault);
    tap_ok(!sim.ranks[3].gave_up,
           "a rank below another one leaves rank 0 time to name that one");
    check_suspects(&sim);
    pass(&sim, 120);
    tap_ok(sim.ranks[3].gave_up, "a rank below another one does not wait for ever");
    let_go(&held, &sim);
}

static void test_silent_shutdown(unsigned seed)
{
    static const char reason[] =
        "rank 4 on n4 does not answer: its process is stopped, swapped out or starved of "
        "cpu. ALLREDUCE a has waited for 120 seconds";
    struct hvd_agreement_settings settings = patient();
    struct held held = {0};
    struct sim sim;

    settings.stall_shutdown_ns = 100LL * SECOND;
    sim_init(&sim, deep, &settings, seed);
    freeze(&held, &sim, 4);
    pass(&sim, 90);
    tap_ok(!sim.ranks[0].gave_up && logged_count(HVD_LOG_WARN) == 1,
           "a job with a silent rank goes on until the shutdown time");
    pass(&sim, 60);
    tap_ok(sim.ranks[0].gave_up && sim.ranks[0].gave_up_for == 4 &&
               strcmp(sim.ranks[0].reason, reason) == 0,
           "past the shutdown time, the job ends with an error that names the rank (%s)",
           sim.ranks[0].reason);
    tap_ok(logged_count(HVD_LOG_ERROR) == 1, "the end of the job is logged as an error");
    let_go(&held, &sim);
}

/* One rank is far ahead: the list that it sends to its parent is bounded. */
static void test_many(unsigned seed)
{
    enum {
        MANY = 4000,
        NAME_BYTES = 1500
    };
    struct hvd_agreement_settings settings = patient();
    struct hvd_request **requests = calloc(MANY, sizeof(requests[0]));
    struct hvd_agreement_counts before;
    uint64_t asked;
    struct sim sim;

    sim_init(&sim, four, &settings, seed);
    for (int i = 0; i < MANY; i++) {
        char name[NAME_BYTES + 1];

        memset(name, 'x', NAME_BYTES);
        snprintf(name, sizeof(name), "%d", i);
        name[strlen(name)] = '.';
        name[NAME_BYTES] = '\0';
        requests[i] = submit(&sim, 3, name, 0);
    }
    pass(&sim, 50);
    before = try_counts(&sim, 3);
    pass(&sim, 12);
    asked = try_counts(&sim, 3).bytes_sent - before.bytes_sent;
    tap_ok(logged_count(HVD_LOG_WARN) == 1 && sim.fault[0] == '\0',
           "when one rank has very many tensors in flight, the others are named (%s)",
           sim.fault);
    tap_ok(asked < (uint64_t)3 << 20,
           "the list of a rank with very many tensors takes few bytes: %lu",
           (unsigned long)asked);
    sim_finish(&sim);
    for (int i = 0; i < MANY; i++) {
        hvd_request_drop(requests[i]);
    }
    free(requests);
    logged_begin();
}

int main(void)
{
    unsigned seed = tap_seed(3);

    logged_begin();
    test_names(seed);
    test_stacks(seed);
    test_joined(seed);
    test_sets(seed);
    test_creations(seed);
    test_planned(seed);
    test_planned_sets(seed);
    test_shutdown(seed);
    test_silent(seed);
    test_silent_leader(seed);
    test_silent_root(seed);
    test_silent_shutdown(seed);
    test_many(seed);
    return tap_done();
}
