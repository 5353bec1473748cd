/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that a member aborts, in simulated jobs: nothing hangs, members agree on
 * which calls have run and which have failed, and numbers and names of sets can be used
 * again. */
#include <stdio.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

enum {
    ROUNDS = 5,
    STEPS = 8, /* in each set before a member aborts it */
    MORE_STEPS = 4
};

static const struct ending well = {.text = ""};
static const struct ending any = {.may_be_aborted = true};

/* Ranks first ... end - 1, which have a set in common in one round. */
struct group {
    int first;
    int end;
};

static struct group group_of(int rank, int size, int round, unsigned seed)
{
    int length = 2 + (round + (int)seed) % 3, shift = round % length;
    int first = (rank + shift) / length * length - shift;
    int end = first + length < size ? first + length : size;

    return (struct group){first > 0 ? first : 0, end};
}

static void propose(struct program *program, enum hvd_kind kind, const char *name,
                    const char *note, const struct ending *ending)
{
    struct hvd_descriptor tensor = sim_allreduce(name, 10);

    tensor.set = kind == HVD_KIND_SET_CREATE ? HVD_SET_GLOBAL : PROGRAM_LAST_SET;
    tensor.kind = kind;
    tensor.note = note;
    program_propose(program, &tensor, ending);
}

static void create(struct program *program, const struct group *group)
{
    char note[32];

    if (group->end - group->first == 1) {
        snprintf(note, sizeof(note), "%d", group->first);
    } else {
        snprintf(note, sizeof(note), group->end - group->first > 2 ? "%d-%d" : "%d,%d",
                 group->first, group->end - 1);
    }
    propose(program, HVD_KIND_SET_CREATE, "hvd.create.group", note, &well);
    program_wait(program);
}

static void step(struct program *program, const struct ending *ending)
{
    propose(program, HVD_KIND_ALLREDUCE, "a", NULL, ending);
    propose(program, HVD_KIND_ALLREDUCE, "b", NULL, ending);
    program_wait(program);
}

/* The member that aborts the set may have calls in flight. The other members make all
 * their calls, of which any may fail. */
static void give_up(struct program *program, int rank, const struct group *group,
                    int round, unsigned seed)
{
    int members = group->end - group->first;
    int quitter = group->first + (round + (int)seed / 3) % members;
    bool is_quitter = rank == quitter || (seed % 4 == 0 && rank == group->first);
    int steps = is_quitter ? (int)(seed + (unsigned)round) % MORE_STEPS : MORE_STEPS;

    for (int i = 0; i < steps; i++) {
        step(program, &any);
    }
    /* one more call, which other members may have made */
    if (is_quitter && seed % 2 == 0) {
        propose(program, seed % 3 == 0 ? HVD_KIND_ALLGATHER : HVD_KIND_ALLREDUCE,
                seed % 3 == 0 ? "c" : "a", NULL, &any);
    }
    if (is_quitter) {
        propose(program, HVD_KIND_SET_ABORT, "hvd.abort.0", "bored", &well);
        program_wait(program);
        propose(program, HVD_KIND_ALLREDUCE, "d", NULL,
                &(struct ending){.text = "bored"});
    }
    program_wait(program);
}

static void remove_set(struct program *program)
{
    propose(program, HVD_KIND_SET_REMOVE, "hvd.set.0", NULL, &well);
    program_wait(program);
}

static void gives_up(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int round = 0; round < ROUNDS; round++) {
            struct group group = group_of(r, size, round, seed);

            create(&programs[r], &group);
            for (int i = 0; i < STEPS; i++) {
                step(&programs[r], &well);
            }
            give_up(&programs[r], r, &group, round, seed);
            remove_set(&programs[r]);
            try_step(&programs[r], 3, false);
        }
    }
}

/* One member does not make the call that the others wait for, until rank 0 has aborted
 * the set. All these calls fail. */
static void waits_in_vain(struct program *programs, int size, unsigned seed)
{
    static const struct ending aborted = {
        .text = "process set 1 has been aborted by rank 0 on "};
    const struct group all = {0, size};
    int zeros = size > 1 ? 1 + (int)(seed % (unsigned)(size - 1)) : -1;

    for (int r = 0; r < size && size > 1; r++) {
        create(&programs[r], &all);
        if (r != zeros) {
            propose(&programs[r], HVD_KIND_BROADCAST, "late", NULL, &aborted);
        }
        if (r == 0) {
            propose(&programs[r], HVD_KIND_SET_ABORT, "hvd.abort.0", "too late", &well);
        }
        program_wait(&programs[r]);
        if (r == zeros) {
            try_step(&programs[r], 3, false);
            propose(&programs[r], HVD_KIND_BROADCAST, "late", NULL, &aborted);
            program_wait(&programs[r]);
        } else {
            try_step(&programs[r], 3, false);
        }
        remove_set(&programs[r]);
    }
}

/* The first member asks for the removal of a set whose steps are replayed, while the
 * others have begun another step. After the abort, that step runs with zeros in place of
 * the first member's tensors. */
static void removes_early(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int round = 0; round < ROUNDS; round++) {
            struct group group = group_of(r, size, round, seed);

            create(&programs[r], &group);
            for (int i = 0; i < STEPS; i++) {
                step(&programs[r], &well);
            }
            if (r != group.first) {
                propose(&programs[r], HVD_KIND_ALLREDUCE, "a", NULL, &any);
                propose(&programs[r], HVD_KIND_ALLREDUCE, "b", NULL, &any);
            }
            if (r == group.end - 1) {
                propose(&programs[r], HVD_KIND_SET_ABORT, "hvd.abort.0", "bored", &well);
            }
            program_wait(&programs[r]);
            remove_set(&programs[r]);
            try_step(&programs[r], 3, false);
        }
    }
}

int main(void)
{
    unsigned seed = tap_seed(11);

    hvd_log_least(HVD_LOG_ERROR);
    try_replayed("members abort sets while other members use them", gives_up, NULL, seed);
    try_scenario("a member that waits is told which rank aborted the set, and why",
                 waits_in_vain, NULL, seed);
    try_replayed("a set is removed after its cancelled batches have run", removes_early,
                 NULL, seed);
    return tap_done();
}
