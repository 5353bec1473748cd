/* SPDX-License-Identifier: Apache-2.0 */
/* Compares batches of float32 tensors that travel as 16-bit floats with batches of 16-bit
 * floats, run by all ranks of a node in one thread. */
#include "collectives/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/reduce/reduce.h"
#include "tests/collectives/run/node_teams.h"
#include "tests/collectives/rank_values.h"
#include "tests/tap.h"

enum {
    TENSORS = 6,
};

static const int64_t counts[TENSORS] = {700, 0, 1, 70000, 5, 63};
static uint32_t seed;

/* A batch that all ranks of the node run. */
struct batch {
    enum hvd_dtype dtype;
    int wire;
    enum hvd_op op;
    double prescale;
    double postscale;
    int tensors;
    int absent; /* the rank that has joined, or -1 */
    bool is_apart; /* the output is not the input */
    void *input[MOST_RANKS][TENSORS];
    void *output[MOST_RANKS][TENSORS];
    struct hvd_entry memory[MOST_RANKS][TENSORS];
    struct hvd_run *runs[MOST_RANKS];
};

static float float_of(uint32_t salt, int rank, int tensor, int64_t index)
{
    uint32_t random = value_random(seed + salt + (uint32_t)tensor, rank, index);
    float value = ((float)(random % 4001) - 2000) / 64;

    switch (random >> 28) {
    case 0:
        return value * 4000; /* some sums exceed the range of float16 */
    case 1:
        return value * 0x1p-20f;
    case 2:
        return random % 64 == 0 ? NAN : random % 64 == 1 ? INFINITY : value;
    default:
        return value;
    }
}

static void fill_inputs(struct batch *batch, int ranks, uint32_t salt)
{
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            float *to = batch->input[r][i];

            for (int64_t k = 0; k < counts[i]; k++) {
                to[k] = float_of(salt, r, i, k);
            }
        }
    }
}

static struct hvd_entry make_entry(const struct batch *batch, int rank, int tensor)
{
    bool is_zeros = rank == batch->absent;

    return (struct hvd_entry){
        .descriptor = {.kind = HVD_KIND_ALLREDUCE,
                       .op = batch->op,
                       .dtype = batch->dtype,
                       .wire = batch->wire,
                       .ndim = 1,
                       .shape = {counts[tensor]},
                       .prescale = batch->prescale,
                       .postscale = batch->postscale,
                       .name = "tensor"},
        .input = is_zeros ? NULL : batch->input[rank][tensor],
        .output = is_zeros ? NULL : batch->output[rank][tensor],
        .is_zeros = is_zeros,
    };
}

static void allocate(struct batch *batch, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            size_t bytes = (size_t)(counts[i] + 1) * sizeof(float);

            batch->input[r][i] = calloc(1, bytes);
            batch->output[r][i] = batch->is_apart ? calloc(1, bytes) : batch->input[r][i];
        }
    }
}

static void finish(struct batch *batch, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        hvd_run_destroy(batch->runs[r]);
        for (int i = 0; i < batch->tensors; i++) {
            if (batch->output[r][i] != batch->input[r][i]) {
                free(batch->output[r][i]);
            }
            free(batch->input[r][i]);
        }
    }
}

static void create_runs(struct node *node, struct batch *batch)
{
    const struct hvd_batch_header header = {.kind = HVD_KIND_ALLREDUCE,
                                            .count = batch->tensors};
    struct hvd_entry *entries[TENSORS];
    struct hvd_error err = {0};

    for (int r = 0; r < node->ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            batch->memory[r][i] = make_entry(batch, r, i);
            entries[i] = &batch->memory[r][i];
        }
        must(
            hvd_run_create(&node->team[r], &header, entries, NULL, &batch->runs[r], &err),
            &err);
    }
}

/* Computes the expected results: runs the batch with tensors of the 16-bit type, which
 * have the rounded inputs, and converts the outputs to float32. */
static void reference(struct node *node, const struct batch *batch, uint32_t salt,
                      float *const *results)
{
    enum hvd_dtype half = (enum hvd_dtype)batch->wire;
    struct batch halves = {.dtype = half,
                           .op = batch->op,
                           .prescale = 1,
                           .postscale = batch->postscale,
                           .tensors = batch->tensors,
                           .absent = batch->absent};
    struct batch full = {.tensors = batch->tensors};

    allocate(&halves, node->ranks);
    allocate(&full, node->ranks);
    fill_inputs(&full, node->ranks, salt);
    for (int r = 0; r < node->ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            hvd_narrow(half, batch->prescale, full.input[r][i], halves.input[r][i],
                       (size_t)counts[i]);
        }
    }
    create_runs(node, &halves);
    node_finish_runs(halves.runs, node->ranks, INT64_MAX);
    for (int i = 0; i < batch->tensors; i++) {
        int giver = batch->absent == 0 ? 1 : 0;

        hvd_widen(half, halves.output[giver][i], results[i], (size_t)counts[i]);
    }
    finish(&halves, node->ranks);
    finish(&full, node->ranks);
}

static bool is_right(struct node *node, const struct batch *batch, uint32_t salt)
{
    float *wanted[TENSORS];
    bool is_good = true;

    for (int i = 0; i < batch->tensors; i++) {
        wanted[i] = calloc((size_t)counts[i] + 1, sizeof(float));
    }
    reference(node, batch, salt, wanted);
    for (int r = 0; r < node->ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            bool is_same = memcmp(batch->output[r][i], wanted[i],
                                  (size_t)counts[i] * sizeof(float)) == 0;

            is_good = is_good && (r == batch->absent || is_same);
        }
    }
    for (int i = 0; i < batch->tensors; i++) {
        free(wanted[i]);
    }
    return is_good;
}

/* Whether the inputs, and the element behind each of them, are unchanged. */
static bool has_kept_inputs(const struct batch *batch, int ranks, uint32_t salt)
{
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            const float *input = batch->input[r][i];

            for (int64_t k = 0; k < counts[i]; k++) {
                float wanted = float_of(salt, r, i, k);

                if (memcmp(&input[k], &wanted, sizeof(wanted)) != 0) {
                    return false;
                }
            }
            if (input[counts[i]] != 0) {
                return false;
            }
        }
    }
    return true;
}

static struct batch make_batch(int wire, enum hvd_op op)
{
    return (struct batch){.dtype = HVD_FLOAT32,
                          .wire = wire,
                          .op = op,
                          .prescale = 0.3,
                          .postscale = 3,
                          .tensors = TENSORS,
                          .absent = -1};
}

static void test_batch(int ranks, int wire, enum hvd_op op)
{
    const char *name = hvd_dtype_name((enum hvd_dtype)wire);
    struct batch in_place = make_batch(wire, op), apart = make_batch(wire, op);
    struct node node;

    apart.is_apart = true;
    node_open(&node, ranks);
    allocate(&in_place, ranks);
    allocate(&apart, ranks);
    fill_inputs(&in_place, ranks, 0);
    fill_inputs(&apart, ranks, 0);
    create_runs(&node, &in_place);
    node_finish_runs(in_place.runs, node.ranks, INT64_MAX);
    create_runs(&node, &apart);
    node_finish_runs(apart.runs, node.ranks, 1);
    tap_ok(is_right(&node, &in_place, 0),
           "%d ranks, op %d: the result of %s tensors, in place", ranks, (int)op, name);
    tap_ok(is_right(&node, &apart, 0) && has_kept_inputs(&apart, ranks, 0),
           "%d ranks, op %d: the result of %s tensors, in short turns, inputs unchanged",
           ranks, (int)op, name);
    finish(&in_place, ranks);
    finish(&apart, ranks);
    node_close(&node);
}

/* Repeats the same runs with other inputs each time. */
static void test_again(void)
{
    struct batch batch = make_batch(HVD_BFLOAT16, HVD_SUM);
    bool is_good = true;
    struct node node;

    node_open(&node, 3);
    allocate(&batch, 3);
    create_runs(&node, &batch);
    for (uint32_t round = 0; round < 4; round++) {
        fill_inputs(&batch, 3, 1000 * round);
        node_finish_runs(batch.runs, node.ranks, 1000);
        is_good = is_good && is_right(&node, &batch, 1000 * round);
        for (int r = 0; r < 3; r++) {
            is_good = is_good && hvd_run_again(batch.runs[r]) == 0;
        }
    }
    tap_ok(is_good, "a run that is started again uses the current values of its tensors");
    finish(&batch, 3);
    node_close(&node);
}

static void test_absent(int ranks, int absent)
{
    struct batch batch = make_batch(HVD_FLOAT16, HVD_AVERAGE);
    struct node node;

    batch.absent = absent;
    node_open(&node, ranks);
    allocate(&batch, ranks);
    fill_inputs(&batch, ranks, 0);
    create_runs(&node, &batch);
    node_finish_runs(batch.runs, node.ranks, INT64_MAX);
    tap_ok(is_right(&node, &batch, 0),
           "rank %d of %d has joined and takes part with zeros", absent, ranks);
    finish(&batch, ranks);
    node_close(&node);
}

static bool is_zero(const struct batch *batch, int ranks)
{
    static const char zeros[70000 * sizeof(float)];
    bool is_good = true;

    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            is_good = is_good && memcmp(batch->output[r][i], zeros,
                                        (size_t)counts[i] * sizeof(float)) == 0;
        }
    }
    return is_good;
}

/* Tests that a run which is cancelled after some turns goes on without its tensors: the
 * inputs are freed, which the sanitizers watch, and nothing is written to the outputs. */
static void test_void(int turns)
{
    struct batch batch = make_batch(HVD_FLOAT16, HVD_SUM);
    struct hvd_entry *entries[TENSORS];
    struct node node;

    batch.is_apart = true;
    node_open(&node, 2);
    allocate(&batch, 2);
    fill_inputs(&batch, 2, 0);
    create_runs(&node, &batch);
    for (int turn = 0; turn < turns; turn++) {
        int64_t work = 1;
        bool moved = false;

        hvd_run_progress(batch.runs[0], &work, &moved);
    }
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < TENSORS; i++) {
            free(batch.input[r][i]);
            batch.input[r][i] = NULL;
            batch.memory[r][i].is_zeros = batch.memory[r][i].is_cancelled = true;
            batch.memory[r][i].input = batch.memory[r][i].output = NULL;
            entries[i] = &batch.memory[r][i];
        }
        hvd_run_cancel(batch.runs[r], entries);
    }
    node_finish_runs(batch.runs, node.ranks, 5000);
    tap_ok(is_zero(&batch, 2),
           "a run cancelled after %d turns ends without touching its tensors", turns);
    finish(&batch, 2);
    node_close(&node);
}

static void test_work(void)
{
    const int64_t turn = 10000, most_piece = 100000;
    struct batch batch = make_batch(HVD_FLOAT16, HVD_SUM);
    struct node node;
    int64_t beyond;

    node_open(&node, 2);
    allocate(&batch, 2);
    create_runs(&node, &batch);
    beyond = node_finish_runs(batch.runs, node.ranks, turn);
    tap_ok(beyond <= most_piece, "a turn of %lld bytes exceeds that by at most %lld",
           (long long)turn, (long long)beyond);
    finish(&batch, 2);
    node_close(&node);
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 8};

    seed = tap_seed((unsigned)time(NULL));
    for (int i = 0; i < 4; i++) {
        test_batch(ranks[i], HVD_FLOAT16, HVD_SUM);
        test_batch(ranks[i], HVD_FLOAT16, HVD_AVERAGE);
        test_batch(ranks[i], HVD_BFLOAT16, HVD_AVERAGE);
    }
    test_again();
    for (int absent = 0; absent < 3; absent++) {
        test_absent(3, absent);
    }
    for (int turns = 0; turns < 12; turns += 3) {
        test_void(turns);
    }
    test_work();
    return tap_done();
}
