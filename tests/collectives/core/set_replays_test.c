/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets whose steps are replayed: replays are broken, sets are removed, and their
 * numbers are used again. Runs as each rank of a job of at least three; rank 0 prints
 * TAP. */
#include <stdio.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    TENSORS = 3,
    MOST_ELEMENTS = 300000, /* so large that it is still in flight when a replay ends */
    MOST_RANKS = 16,
    ROUNDS = 4,
    STEPS = 30
};

/* A set that this rank knows. In each step its members sum the tensors. */
struct set {
    int id;
    int ranks[MOST_RANKS]; /* [count] ascending */
    int count;
    bool is_member;
    int64_t sum; /* the sum of the members' ranks, counted from 1 */
    float values[TENSORS][MOST_ELEMENTS];
};

static const int64_t elements[TENSORS] = {10, 1000, MOST_ELEMENTS};
static struct set early, late;
static int rank, size;

static void make_set(struct set *set, int first, int end)
{

    set->count = 0;
    set->sum = 0;
    for (int i = first; i < end; i++) {
        set->ranks[set->count++] = i;
        set->sum += i + 1;
    }
    set->is_member = rank >= first && rank < end;
    set->id = call_set_add(set->ranks, set->count);
}

static struct hvd_request *start(struct set *set, int number, int step)
{
    char name[16];
    float *data = set->values[number];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    struct hvd_tensor tensor;

    snprintf(name, sizeof(name), "t%d", number);
    tensor = call_tensor(name, HVD_FLOAT32, &elements[number], 1, data, data);
    for (int64_t i = 0; i < elements[number]; i++) {
        data[i] = (float)((rank + 1) * (step + i % 7));
    }
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, set->id, &request, &err) != 0) {
        call_finish(err.status, &request, &err);
    }
    return request;
}

static bool finish(struct set *set, int number, int step, struct hvd_request *request)
{
    struct hvd_error err = {0};
    bool good = true;

    call_finish(0, &request, &err);
    hvd_request_free(request);
    for (int64_t i = 0; i < elements[number] && good; i++) {
        good = set->values[number][i] == (float)(set->sum * (step + i % 7));
    }
    return good;
}

/* Plays one step. With is_turned, this rank starts the tensors in reverse order and waits
 * for each before it starts the next. Otherwise it starts them in the order of the
 * replay. */
static bool play_step(struct set *set, int step, bool is_turned)
{
    struct hvd_request *requests[TENSORS];
    bool good = true;

    for (int i = 0; set->is_member && is_turned && i < TENSORS; i++) {
        int number = TENSORS - 1 - i;

        good &= finish(set, number, step, start(set, number, step));
    }
    for (int i = 0; set->is_member && !is_turned && i < TENSORS; i++) {
        requests[i] = start(set, i, step);
    }
    for (int i = 0; set->is_member && !is_turned && i < TENSORS; i++) {
        good &= finish(set, i, step, requests[i]);
    }
    return good;
}

static bool play(int steps)
{
    bool good = true;

    for (int step = 1; step <= steps; step++) {
        bool is_turned = step == steps - 2 && rank == size - 1;

        good &= play_step(&early, step, false);
        good &= play_step(&late, step, is_turned);
    }
    return good;
}

/* Whether the global set and this set are the only ones. */
static bool is_left(const struct set *set)
{
    int ids[2] = {-1, -1};

    return hvd_set_count() == 2 && hvd_set_ids(ids) == 2 && ids[0] == 0 &&
           ids[1] == set->id;
}

int main(void)
{
    bool good = true, one_is_left;
    int id;

    rank = call_init();
    size = hvd_size();
    make_set(&early, 0, size - 1);
    make_set(&late, 1, size);
    id = late.id;
    for (int round = 0; round < ROUNDS; round++) {
        good &= play(STEPS);
        call_set_remove(late.id);
        make_set(&late, round % 2 == 0 ? 2 : 1, size);
        good &= late.id == id;
    }
    good &= play(STEPS);
    /* a rank that is a member of one set only finishes before the others */
    call_barrier();
    call_set_remove(early.id);
    one_is_left = is_left(&late);
    if (rank == 0) {
        tap_ok(good, "replayed sums of process sets are right, also when replays end");
        tap_ok(one_is_left, "the set that was not removed is left");
        tap_done();
    } else if (!good || !one_is_left) {
        fprintf(stderr, "# rank %d has a wrong sum or wrong sets\n", rank);
    }
    return hvd_shutdown() != 0 || !good || !one_is_left;
}
