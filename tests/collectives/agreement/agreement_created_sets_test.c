/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that their members create alone, in simulated jobs: members can use them,
 * and other ranks hear nothing about them. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

enum {
    ROUNDS = 6,
    STEPS = 8
};

static const struct ending well = {.text = ""};

/* Creates a set of the ranks first ... end - 1, which include the rank of this
 * program. */
static void create(struct program *program, const char *label, int first, int end,
                   const struct ending *ending)
{
    char name[32], note[32];
    const struct hvd_descriptor descriptor = {
        .kind = HVD_KIND_SET_CREATE, .name = name, .note = note};

    snprintf(name, sizeof(name), "hvd.create.%s", label);
    snprintf(note, sizeof(note),
             end - first > 2    ? "%d-%d"
             : end - first == 2 ? "%d,%d"
                                : "%d",
             first, end - 1);
    program_propose(program, &descriptor, ending);
}

/* Submits a tensor to the set that the program has created last. */
static void submit(struct program *program, const char *name, enum hvd_kind kind)
{
    struct hvd_descriptor tensor = sim_allreduce(name, 10);

    tensor.set = PROGRAM_LAST_SET;
    tensor.kind = kind;
    program_propose(program, &tensor, &well);
}

static void remove_last(struct program *program)
{
    const struct hvd_descriptor drop = {
        .kind = HVD_KIND_SET_REMOVE, .name = "hvd.set.0", .set = PROGRAM_LAST_SET};

    program_propose(program, &drop, &well);
    program_wait(program);
}

/* Creates a set, works in it until a replay is in force, and removes it while requests
 * are in flight. */
static void use(struct program *program, const char *label, int first, int end)
{
    create(program, label, first, end, &well);
    program_wait(program);
    for (int step = 0; step < STEPS; step++) {
        submit(program, "a", HVD_KIND_ALLREDUCE);
        submit(program, "b", HVD_KIND_ALLREDUCE);
        program_wait(program);
    }
    submit(program, "c", HVD_KIND_ALLGATHER);
    submit(program, "a", HVD_KIND_ALLREDUCE);
    remove_last(program);
}

/* In each round, the ranks are divided into groups in another way. All groups of a round
 * create their sets under one label. Meanwhile, all ranks also run steps in the global
 * set. A group that has finished may be one round ahead of others. */
static void works_in_groups(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int round = 0; round < ROUNDS; round++) {
            int length = 1 + (round + (int)seed) % 3, shift = round % length;
            int first = (r + shift) / length * length - shift;
            int end = first + length < size ? first + length : size;
            char label[16];

            snprintf(label, sizeof(label), "round %d", round);
            use(&programs[r], label, first > 0 ? first : 0, end);
            try_step(&programs[r], 3, false);
        }
    }
}

/* The first half of the ranks start to join; then they create a set and remove it, while
 * the join may have ended or not. The other ranks do the same, and may run a step, before
 * they join. */
static void joins_meanwhile(struct program *programs, int size, unsigned seed)
{
    int cut = size / 2;

    for (int r = 0; r < size; r++) {
        for (int round = 0; round < 3; round++) {
            bool is_low = r < cut;

            for (int step = 0; step < STEPS; step++) {
                try_step(&programs[r], 3, false);
            }
            if (is_low) {
                program_start_join(&programs[r]);
            }
            create(&programs[r], "joined", is_low ? 0 : cut, is_low ? cut : size, &well);
            program_wait_for(&programs[r], "hvd.create.joined");
            submit(&programs[r], "x", HVD_KIND_ALLREDUCE);
            program_wait_for(&programs[r], "x");
            remove_last(&programs[r]);
            if (!is_low && seed % 2 == 0) {
                try_step(&programs[r], 3, false);
            }
            if (!is_low) {
                program_join(&programs[r]);
            }
        }
    }
}

/* One rank lists other members for a set than the rest, and all get an error. Then all
 * ranks list the same members under the same label, and the set is created. */
static void disagrees(struct program *programs, int size, unsigned seed)
{
    static const struct ending differs = {.text = "creates process set 'w' of ranks ["};

    for (int r = 0; r < size && size > 2; r++) {
        int odd = 1 + (int)seed % (size - 2);

        create(&programs[r], "w", r == odd ? odd : 0, size, &differs);
        program_wait(&programs[r]);
        use(&programs[r], "w", 0, size);
        try_step(&programs[r], 3, false);
    }
}

/* --- which ranks hear of a set --- */

static uint64_t received_by(const struct sim *sim, int first, int end)
{
    uint64_t received = 0;

    for (int r = first; r < end; r++) {
        received += try_counts(sim, r).received;
    }
    return received;
}

/* Ranks 1 to 3, the members of a set, make the same call, which ends. */
static void call_in_three(struct sim *sim, const struct hvd_descriptor *descriptor)
{
    struct hvd_request *requests[3];

    for (int i = 0; i < 3; i++) {
        sim_wait(sim, 1 + i, true);
        requests[i] = sim_submit(sim, 1 + i, &descriptor, 1);
    }
    sim_finish_requests(sim, requests, 3, 1000000000);
}

static void test_replay(unsigned seed)
{
    static const int nodes[] = {2, 2, 0};
    const struct hvd_descriptor create_it = {
        .kind = HVD_KIND_SET_CREATE, .name = "hvd.create.x", .note = "1-3"};
    const struct hvd_descriptor remove_it = {
        .kind = HVD_KIND_SET_REMOVE, .name = "hvd.set.0", .set = 1, .root = 1};
    struct hvd_descriptor tensor = sim_allreduce("a", 10);
    struct sim sim;

    tensor.set = 1;
    sim_init(&sim, nodes, NULL, seed);
    call_in_three(&sim, &create_it);
    for (int wave = 0; wave < 20; wave++) {
        call_in_three(&sim, &tensor);
    }
    call_in_three(&sim, &remove_it);
    tap_ok(sim.fault[0] == '\0' && sim.replayed_in_sets > 0 &&
               try_counts(&sim, 0).breaks == 1,
           "members that remove a set end its replay once (%s)", sim.fault);
    sim_finish(&sim);
}

/* Ranks 3 and 4, on two nodes, create a set and remove it, ten times. Rank 5 gets
 * messages about it, too, because it shares a node with rank 4; ranks 1, 2 and those from
 * 6 on get none. */
static void test_others(unsigned seed)
{
    static const int nodes[] = {3, 1, 2, 2, 2, 0};
    const struct hvd_descriptor create_it = {
        .kind = HVD_KIND_SET_CREATE, .name = "hvd.create.x", .note = "3,4"};
    const struct hvd_descriptor remove_it = {
        .kind = HVD_KIND_SET_REMOVE, .name = "hvd.set.0", .set = 1, .root = 1};
    struct hvd_request *requests[2];
    struct sim sim;

    sim_init(&sim, nodes, NULL, seed);
    for (int round = 0; round < 10; round++) {
        const struct hvd_descriptor *only = &create_it;

        requests[0] = sim_submit(&sim, 3, &only, 1);
        requests[1] = sim_submit(&sim, 4, &only, 1);
        sim_finish_requests(&sim, requests, 2, 1000000000);
        only = &remove_it;
        requests[0] = sim_submit(&sim, 3, &only, 1);
        requests[1] = sim_submit(&sim, 4, &only, 1);
        sim_finish_requests(&sim, requests, 2, 1000000000);
    }
    tap_ok(sim.fault[0] == '\0' && received_by(&sim, 3, 5) == 40 &&
               received_by(&sim, 5, 6) == 20 && received_by(&sim, 1, 3) == 0 &&
               received_by(&sim, 6, 10) == 0,
           "only rank 0 and the nodes of members hear of a set (%s)", sim.fault);
    sim_finish(&sim);
}

int main(void)
{
    unsigned seed = tap_seed(7);

    hvd_log_least(HVD_LOG_ERROR);
    try_replayed(
        "groups create sets, work in them and remove them, while all ranks continue",
        works_in_groups, NULL, seed);
    try_scenario("ranks that have joined create sets and remove them", joins_meanwhile,
                 NULL, seed);
    try_scenario("members that disagree get an error, and can continue", disagrees, NULL,
                 seed);
    test_replay(seed);
    test_others(seed);
    return tap_done();
}
