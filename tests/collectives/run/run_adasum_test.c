/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of batches with the op Adasum, run by all ranks of a node in one thread. */
#include "collectives/run/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/reduce/adasum_matrix.h"
#include "tests/collectives/run/node_teams.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/reduce/adasum_reference.h"
#include "tests/tap.h"

enum {
    TENSORS = 6,
};

static const int64_t counts[TENSORS] = {700, 0, 1, 70000, 5, 63};
static uint32_t seed;

/* A batch that all ranks of the node run. */
struct batch {
    enum hvd_dtype dtype;
    int first; /* index of the batch's first tensor in `counts` */
    int tensors;
    int absent; /* the rank that has joined, or -1 */
    double prescale;
    double postscale;
    void *output[MOST_RANKS][TENSORS];
};

/* Returns an element of the input, between -1 and 1; every dtype holds it exactly. */
static double input_of(const struct batch *batch, int rank, int tensor, int64_t index)
{
    uint32_t random = value_random(seed + (uint32_t)tensor, rank, index);

    return rank == batch->absent ? 0 : ((double)(random % 257) - 128) / 128;
}

static struct hvd_entry make_entry(struct batch *batch, int rank, int tensor)
{
    size_t bytes = (size_t)(counts[tensor] + 1) * hvd_dtype_bytes(batch->dtype);
    char *data = calloc(1, bytes);

    for (int64_t i = 0; i < counts[tensor]; i++) {
        value_store(batch->dtype, data, i, input_of(batch, rank, tensor, i));
    }
    batch->output[rank][tensor] = data;
    return (struct hvd_entry){
        .descriptor = {.kind = HVD_KIND_ADASUM,
                       .op = HVD_ADASUM,
                       .dtype = batch->dtype,
                       .ndim = 1,
                       .shape = {counts[tensor]},
                       .prescale = batch->prescale,
                       .postscale = batch->postscale,
                       .name = "tensor"},
        .input = rank == batch->absent ? NULL : data,
        .output = rank == batch->absent ? NULL : data,
        .is_zeros = rank == batch->absent,
    };
}

/* Runs the batch on all ranks in turns of `turn` bytes of work. */
static void run_batch(struct node *node, struct batch *batch, int64_t turn)
{
    const struct hvd_batch_header header = {.kind = HVD_KIND_ADASUM,
                                            .count = batch->tensors};
    struct hvd_entry memory[MOST_RANKS][TENSORS], *entries[TENSORS];
    struct hvd_run *runs[MOST_RANKS];
    struct hvd_error err = {0};

    for (int r = 0; r < node->ranks; r++) {
        for (int i = 0; i < batch->tensors; i++) {
            memory[r][i] = make_entry(batch, r, batch->first + i);
            entries[i] = &memory[r][i];
        }
        must(hvd_run_create(&node->team[r], &header, entries, NULL, &runs[r], &err),
             &err);
    }
    node_finish_runs(runs, node->ranks, turn);
    for (int r = 0; r < node->ranks; r++) {
        hvd_run_destroy(runs[r]);
    }
}

static void batch_finish(struct batch *batch)
{
    for (int r = 0; r < MOST_RANKS; r++) {
        for (int i = 0; i < TENSORS; i++) {
            free(batch->output[r][i]);
        }
    }
}

static bool is_right(const struct batch *batch, int ranks, int tensor)
{
    struct adasum_vector vectors[MOST_RANKS];
    bool is_good = true;

    for (int r = 0; r < ranks; r++) {
        vectors[r] = adasum_vector_make(counts[tensor]);
        for (int64_t i = 0; i < counts[tensor]; i++) {
            vectors[r].value[i] = batch->prescale * input_of(batch, r, tensor, i);
        }
        adasum_vector_begin(&vectors[r]);
    }
    adasum_reference_tree(vectors, ranks);
    for (int64_t i = 0; i < counts[tensor]; i++) {
        vectors[0].value[i] *= batch->postscale;
        vectors[0].magnitude[i] *= batch->postscale;
        for (int r = 0; r < ranks; r++) {
            double got = value_load(batch->dtype, batch->output[r][tensor], i);

            is_good = is_good && (r == batch->absent
                                      ? got == 0
                                      : adasum_reference_is_close(batch->dtype, ranks,
                                                                  &vectors[0], i, got));
        }
    }
    for (int r = 0; r < ranks; r++) {
        adasum_vector_finish(&vectors[r]);
    }
    return is_good;
}

/* Whether the outputs of two ranks, of one batch or of two, have the same bits. */
static bool is_same(const struct batch *a, int rank, const struct batch *b, int other,
                    int tensor)
{
    return memcmp(a->output[rank][tensor], b->output[other][tensor],
                  (size_t)counts[tensor] * hvd_dtype_bytes(a->dtype)) == 0;
}

static void test_batch(int ranks, enum hvd_dtype dtype)
{
    struct batch together = {.dtype = dtype,
                             .tensors = TENSORS,
                             .absent = -1,
                             .prescale = 0.5,
                             .postscale = 3};
    struct node node;
    bool right = true, same = true;

    node_open(&node, ranks);
    run_batch(&node, &together, INT64_MAX);
    for (int i = 0; i < TENSORS; i++) {
        struct batch alone = together;

        alone.first = i;
        alone.tensors = 1;
        run_batch(&node, &alone, 1);
        right = right && is_right(&together, ranks, i);
        for (int r = 0; r < ranks; r++) {
            same = same && is_same(&together, 0, &alone, r, i) &&
                   is_same(&together, 0, &together, r, i);
            free(alone.output[r][i]);
        }
    }
    tap_ok(right, "%d ranks: each tensor of a batch of %s is right", ranks,
           hvd_dtype_name(dtype));
    tap_ok(same,
           "%d ranks: each tensor has the same bits on all ranks, and when it runs alone",
           ranks);
    batch_finish(&together);
    node_close(&node);
}

static void test_absent(int ranks, int absent)
{
    struct batch batch = {.dtype = HVD_FLOAT32,
                          .tensors = TENSORS,
                          .absent = absent,
                          .prescale = 1,
                          .postscale = 1};
    struct node node;
    bool right = true;

    node_open(&node, ranks);
    run_batch(&node, &batch, INT64_MAX);
    for (int i = 0; i < TENSORS; i++) {
        right = right && is_right(&batch, ranks, i);
    }
    tap_ok(right, "rank %d of %d has joined and takes part with zeros", absent, ranks);
    batch_finish(&batch);
    node_close(&node);
}

/* Tests that no call of hvd_adasum_matrix_compute does much more work than it may, and
 * that the calls count all of their work. */
static void test_turns(void)
{
    const int64_t elements = 1 << 20, turn = 100000, most_piece = 300000;
    struct hvd_adasum_matrix table = {.dtype = HVD_FLOAT32,
                                      .prescale = 1,
                                      .postscale = 1,
                                      .ranks = 2,
                                      .tensors = 1,
                                      .begin = calloc(2, sizeof(int64_t)),
                                      .distance = 1};
    int64_t calls = 0, most = 0;

    table.begin[1] = elements;
    if (hvd_adasum_matrix_init(&table) != 0) {
        printf("Bail out! no memory\n");
        exit(99);
    }
    memset(table.rows, 0, (size_t)(2 * elements) * sizeof(float));
    for (int task = HVD_ADASUM_LOAD; task <= HVD_ADASUM_STORE; task++) {
        int status = HVD_INPROGRESS;

        hvd_adasum_matrix_begin(&table, (enum hvd_adasum_task)task);
        while (status == HVD_INPROGRESS) {
            int64_t work = turn;

            status = hvd_adasum_matrix_compute(&table, &work);
            most = turn - work > most ? turn - work : most;
            calls++;
        }
    }
    tap_ok(most <= turn + most_piece && calls * most >= 7 * elements * 4,
           "7 times 4 MiB of work take %lld calls of at most %lld bytes",
           (long long)calls, (long long)most);
    hvd_adasum_matrix_finish(&table);
}

int main(void)
{
    static const enum hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                            HVD_FLOAT64};

    seed = tap_seed((unsigned)time(NULL));
    for (int ranks = 1; ranks <= MOST_RANKS; ranks *= 2) {
        for (int i = 0; i < 4; i++) {
            test_batch(ranks, dtypes[i]);
        }
    }
    for (int absent = 0; absent < 4; absent++) {
        test_absent(4, absent);
    }
    test_turns();
    return tap_done();
}
