/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets are added and removed while tensors, replays and other sets are in
 * flight. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

static const struct ending well = {.text = ""};

/* Adds a set of the ranks below `count`, which must get the number `wanted`. */
static void add_set(struct program *program, int count, int step, int wanted)
{
    struct ending ending = {.text = "", .has_value = true, .value = wanted};
    char name[32], note[4 * TRY_MOST_RANKS];
    struct hvd_descriptor add = {.kind = HVD_KIND_SET_ADD, .name = name, .note = note};
    size_t used = 0;

    snprintf(name, sizeof(name), "hvd.set.%d", step);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(note + used, sizeof(note) - used, "%s%d",
                                 i > 0 ? "," : "", i);
    }
    program_propose(program, &add, &ending);
}

static void remove_set(struct program *program, int set, int step)
{
    char name[32];
    struct hvd_descriptor drop = {.kind = HVD_KIND_SET_REMOVE, .name = name, .root = set};

    snprintf(name, sizeof(name), "hvd.set.%d", step);
    program_propose(program, &drop, &well);
}

static void submit_in(struct program *program, int set, const char *name,
                      enum hvd_kind kind, const struct ending *ending)
{
    struct hvd_descriptor tensor = sim_allreduce(name, 10);

    tensor.set = set;
    tensor.kind = kind;
    program_propose(program, &tensor, ending);
}

/* A rank that continues to submit to a set that it is removing gets an error. Another set
 * with the same number is not affected. */
static void submits_too_late(struct program *programs, int size, unsigned seed)
{
    static const struct ending late = {.text = "process set is being removed"};

    for (int r = 0; r < size; r++) {
        for (int round = 0; round < 6; round++) {
            int count = 1 + (round + (int)seed) % (size > 1 ? size - 1 : 1);
            bool is_in = r < count && size > 1;

            if (size == 1) {
                continue; /* the global set has the same ranks */
            }
            add_set(&programs[r], count, 2 * round, 1);
            program_wait(&programs[r]);
            for (int i = 0; i < 3 && is_in; i++) {
                submit_in(&programs[r], 1, "a", HVD_KIND_ALLREDUCE, &well);
                program_wait(&programs[r]);
            }
            if (is_in) {
                submit_in(&programs[r], 1, "b", HVD_KIND_ALLGATHER, &well);
            }
            remove_set(&programs[r], 1, 2 * round + 1);
            for (int i = 0; i < 2 && is_in && (r + round) % 2 == 0; i++) {
                submit_in(&programs[r], 1, i == 0 ? "a" : "c", HVD_KIND_ALLGATHER, &late);
            }
            program_wait(&programs[r]);
            submit_in(&programs[r], 1, "d", HVD_KIND_ALLGATHER, &late);
        }
    }
}

/* The ranks of the first two nodes work in their set. Ranks of other nodes get no message
 * about it. */
static void test_others(unsigned seed)
{
    static const int nodes[] = {2, 2, 2, 2, 0};
    const struct hvd_descriptor add = {
        .kind = HVD_KIND_SET_ADD, .name = "hvd.set.0", .note = "0,1,2,3"};
    const struct hvd_descriptor *only = &add;
    struct hvd_request *requests[8];
    struct hvd_agreement_settings settings = sim_settings();
    uint64_t before[8], membership = 0, others = 0;
    struct sim sim;

    settings.may_replay = false;
    sim_init(&sim, nodes, &settings, seed);
    for (int r = 0; r < 8; r++) {
        requests[r] = sim_submit(&sim, r, &only, 1);
    }
    sim_finish_requests(&sim, requests, 8, 1000000000);
    for (int r = 0; r < 8; r++) {
        before[r] = try_counts(&sim, r).received;
    }
    for (int wave = 0; wave < 10; wave++) {
        struct hvd_descriptor tensor = sim_allreduce("a", 10);

        tensor.set = 1;
        only = &tensor;
        for (int r = 0; r < 4; r++) {
            requests[r] = sim_submit(&sim, r, &only, 1);
        }
        sim_finish_requests(&sim, requests, 4, 1000000000);
    }
    for (int r = 1; r < 8; r++) {
        *(r < 4 ? &membership : &others) += try_counts(&sim, r).received - before[r];
    }
    tap_ok(
        sim.fault[0] == '\0' && membership >= 30 && others == 0,
        "only branches with members of a set get messages about its tensors (%lu, %lu%s)",
        (unsigned long)membership, (unsigned long)others, sim.fault);
    sim_finish(&sim);
}

int main(void)
{
    unsigned seed = tap_seed(5);

    hvd_log_least(HVD_LOG_ERROR);
    try_scenario("tensors submitted to a set after its removal are refused",
                 submits_too_late, NULL, seed);
    test_others(seed);
    return tap_done();
}
