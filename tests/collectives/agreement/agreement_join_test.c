/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks join while tensors, replays, groups and process sets are in flight. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

/* A rank joins without waiting for its last tensors, while others submit the same names
 * again. */
static void does_not_wait(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 5; epoch++) {
            int steps = 1 + (int)((seed + (unsigned)(r + epoch)) % 3);

            for (int i = 0; i < steps; i++) {
                program_wait(&programs[r]);
                program_submit(&programs[r], 10, "a");
                program_submit(&programs[r], 10, "b");
            }
            program_join(&programs[r]);
        }
    }
}

/* A rank shuts the job down as soon as its join has ended, while others still run what
 * they submitted before. The shutdown may make joins fail, but each join ends in the same
 * way on all ranks. */
static void leaves_after_join(struct program *programs, int size, unsigned seed)
{
    does_not_wait(programs, size, seed);
    for (int r = 0; r < size; r++) {
        program_leave(&programs[r]);
    }
}

/* Submits tensors of all kinds, unless this is one of the ranks up to `last`: these join
 * without them. */
static void submit_kinds(struct program *program, int rank, int last, int epoch)
{
    static const struct {
        enum hvd_kind kind;
        enum hvd_op op;
        const char *refusal;
    } kinds[] = {
        {HVD_KIND_ALLREDUCE, HVD_SUM, ""},
        {HVD_KIND_ALLREDUCE, HVD_MAX, "Allreduce with op Max is not supported with Join"},
        {HVD_KIND_ADASUM, HVD_ADASUM, ""},
        {HVD_KIND_ALLGATHER, HVD_SUM,
         "Allgather is not supported with Join at this time. Specify "
         "sparse_to_dense=True if using DistributedOptimizer"},
        {HVD_KIND_BROADCAST, HVD_SUM,
         "Broadcast is not supported with Join at this time."},
        {HVD_KIND_ALLTOALL, HVD_SUM, "Alltoall is not supported with Join at this time."},
        {HVD_KIND_REDUCESCATTER, HVD_SUM,
         "Reducescatter is not supported with Join at this time."},
        {HVD_KIND_GATHER, HVD_SUM,
         "GATHER is not supported with Join: a rank that has joined takes no part in "
         "it."},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && rank > last; i++) {
        char name[32];
        struct ending ending = {.text = last < 0 ? "" : kinds[i].refusal};
        struct hvd_descriptor tensor;

        snprintf(name, sizeof(name), "kind%zu.%d", i, epoch % 3);
        tensor = sim_allreduce(name, 10 + (int64_t)i);
        tensor.kind = kinds[i].kind;
        tensor.op = kinds[i].op;
        program_propose(program, &tensor, &ending);
    }
}

/* A tensor fails only if a rank lacks it, not merely because a rank has joined by the
 * time of the decision. */
static void joins_at_once(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 10; epoch++) {
            bool all_have_it = (seed + (unsigned)epoch) % 2 == 0 || size == 1;

            submit_kinds(&programs[r], r, all_have_it ? -1 : epoch % (size - 1), epoch);
            program_join(&programs[r]);
        }
    }
}

/* One rank joins at once. The others submit a group of tensors a and b, and then join.
 * Tensor b fails, because one rank gives it another shape, while tensor a waits for b. */
static void half_a_group(struct program *programs, int size, unsigned seed)
{
    static const struct ending differs = {.text = "Mismatched ALLREDUCE tensor shapes"};

    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 6; epoch++) {
            struct hvd_descriptor a = sim_allreduce("a", 20), b = sim_allreduce("b", 30);
            const struct hvd_descriptor *group[] = {&a, &b};
            /* the rank that joins at once */
            int first = (epoch + (int)(seed % 7)) % size;

            b.shape[0] += r == (first + 1) % size ? 1 : 0;
            if (r != first) {
                program_propose_group(&programs[r], group, 2, size > 2 ? &differs : NULL);
            }
            program_join(&programs[r]);
        }
    }
}

/* All ranks add and remove process sets while one of them has joined. */
static void sets_beside_join(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 6; epoch++) {
            char name[32];
            struct hvd_descriptor add = {
                .kind = HVD_KIND_SET_ADD, .name = name, .note = "0,1"};
            struct hvd_descriptor drop = {
                .kind = HVD_KIND_SET_REMOVE, .name = name, .root = 1};
            struct ending refused = {
                .text = "cannot be added or removed after a rank has joined"};

            if (size > 2 && (seed + (unsigned)(r + epoch)) % (unsigned)size != 0) {
                snprintf(name, sizeof(name), "hvd.set.%d", 2 * epoch);
                program_propose(&programs[r], &add, &refused);
                snprintf(name, sizeof(name), "hvd.set.%d", 2 * epoch + 1);
                program_propose(&programs[r], &drop, &refused);
            }
            program_join(&programs[r]);
        }
    }
}

/* Ranks join just when the first replay begins. */
static void meets_replay(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 6; epoch++) {
            unsigned odd = hvd_hash_number(seed + (unsigned)(r * 31 + epoch)) % 3;
            unsigned steps = 2 + hvd_hash_number(seed * 3 + (unsigned)epoch) % 5 + odd;

            for (unsigned step = 0; step < steps; step++) {
                for (int i = 0; i < 4; i++) {
                    char name[32];

                    snprintf(name, sizeof(name), "t%d.%d", epoch, i);
                    program_wait_for(&programs[r], name);
                    program_submit(&programs[r], 10, "%s", name);
                }
            }
            program_join(&programs[r]);
        }
    }
}

/* A rank continues to submit, from another thread, while its own join is in flight. */
static void submits_after_join(struct program *programs, int size, unsigned seed)
{
    struct hvd_descriptor late = sim_allreduce("x", 10), once = sim_allreduce("once", 3);

    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 4; epoch++) {
            bool is_late = r == (epoch + (int)(seed % 5)) % size;

            for (int i = 0; i < 3 && !is_late; i++) {
                program_submit(&programs[r], 10, "x");
                program_wait_for(&programs[r], "x");
            }
            program_start_join(&programs[r]);
            for (int i = 0; i < 3 && is_late; i++) {
                program_submit_joined(&programs[r], &late);
                program_submit_joined(&programs[r], &once);
                program_wait_for(&programs[r], "x");
                program_wait_for(&programs[r], "once");
            }
            program_wait(&programs[r]);
        }
    }
}

/* A join concerns the global set; another set continues. */
static void goes_on_in_a_set(struct program *programs, int size, unsigned seed)
{
    static const struct ending well = {.text = ""};
    struct hvd_descriptor add = {.kind = HVD_KIND_SET_ADD, .name = "set", .note = "0,1"};
    struct hvd_descriptor other = sim_allreduce("x", 10);

    other.set = 1;
    for (int r = 0; r < size && size > 2; r++) {
        program_propose(&programs[r], &add, &well);
        program_wait(&programs[r]);
        if (r == (int)(seed % 2)) {
            program_start_join(&programs[r]);
        }
        for (int i = 0; i < 4 && r < 2; i++) {
            program_propose(&programs[r], &other, &well);
            program_wait_for(&programs[r], "x");
        }
        if (r != (int)(seed % 2)) {
            program_start_join(&programs[r]);
        }
        program_wait(&programs[r]);
    }
}

int main(void)
{
    unsigned seed = tap_seed(7);

    hvd_log_least(HVD_LOG_ERROR);
    try_scenario("ranks join without waiting for their tensors", does_not_wait, NULL,
                 seed);
    try_scenario("a rank shuts down while others end their joins", leaves_after_join,
                 NULL, seed);
    try_scenario("a tensor that a joined rank lacks fails if zeros would be wrong",
                 joins_at_once, NULL, seed);
    try_scenario("the last join does not overtake half a group", half_a_group, NULL,
                 seed);
    try_scenario("process sets cannot be changed while a rank has joined",
                 sets_beside_join, NULL, seed);
    try_scenario("joins may cross the announcement of a replay", meets_replay, NULL,
                 seed);
    try_scenario(
        "a tensor submitted after this rank's join is refused, on this rank alone",
        submits_after_join, NULL, seed);
    try_scenario("a rank that has joined continues in another process set",
                 goes_on_in_a_set, NULL, seed);
    return tap_done();
}
