/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a retired run accepts a batch only if that batch differs from the previous
 * one in nothing but its tensors' memory. */
#include "collectives/run/run.h"

#include "tests/collectives/run/node_teams.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    TENSORS = 2,
    MOST = 3000, /* more elements than fit a slot */
    LARGE = 200000,
};

/* The wire type of the float32 tensors: none, or float16, which holds the sums
 * exactly. */
static int32_t wire;

static const struct hvd_batch_header usual = {.kind = HVD_KIND_ALLREDUCE,
                                              .count = TENSORS};

/* The batch of one rank. */
struct batch {
    struct hvd_batch_header header;
    float values[TENSORS][MOST];
    struct hvd_entry memory[TENSORS];
    struct hvd_entry *entries[TENSORS];
};

static void fill(struct batch *batch, int rank, const int64_t *counts, float factor)
{
    batch->header = usual;
    for (int i = 0; i < TENSORS; i++) {
        batch->entries[i] = &batch->memory[i];
        batch->memory[i] = (struct hvd_entry){.descriptor = {.kind = HVD_KIND_ALLREDUCE,
                                                             .op = HVD_SUM,
                                                             .dtype = HVD_FLOAT32,
                                                             .wire = wire,
                                                             .ndim = 1,
                                                             .shape = {counts[i]},
                                                             .prescale = 1,
                                                             .postscale = 1,
                                                             .name = "tensor"},
                                              .input = batch->values[i],
                                              .output = batch->values[i]};
        for (int64_t k = 0; k < counts[i]; k++) {
            batch->values[i][k] = factor * (float)((rank + 1) * (k % 100 + i));
        }
    }
}

static bool holds_sums(const struct batch *batch, const int64_t *counts, float factor)
{
    for (int i = 0; i < TENSORS; i++) {
        for (int64_t k = 0; k < counts[i]; k++) {
            if (batch->values[i][k] != factor * (float)(3 * (k % 100 + i))) {
                return false;
            }
        }
    }
    return true;
}

static struct hvd_run *create(struct node *node, int rank, const struct batch *batch)
{
    struct hvd_run *run = NULL;
    struct hvd_error err = {0};

    must(hvd_run_create(&node->team[rank], &usual, batch->entries, NULL, &run, &err),
         &err);
    return run;
}

static void run_first(struct node *node, struct batch *batches, struct hvd_run *runs[])
{
    static const int64_t counts[] = {100, MOST};

    for (int r = 0; r < RANKS; r++) {
        fill(&batches[r], r, counts, 1);
        runs[r] = create(node, r, &batches[r]);
    }
    node_finish_runs(runs, RANKS, 1000);
    tap_ok(holds_sums(&batches[0], counts, 1) && holds_sums(&batches[1], counts, 1),
           "the first batch gives the right sums");
}

static void run_next(struct batch *batches, struct hvd_run *runs[])
{
    static const int64_t counts[] = {MOST, 100};
    bool fits = true;

    for (int r = 0; r < RANKS; r++) {
        runs[r] = hvd_run_retire(runs[r]);
        fill(&batches[r], r, counts, 5);
        runs[r] =
            runs[r] == NULL ? NULL : hvd_run_restart(runs[r], &usual, batches[r].entries);
        fits = fits && runs[r] != NULL;
    }
    tap_ok(fits, "its runs take another batch of the same length");
    if (fits) {
        node_finish_runs(runs, RANKS, 1000);
    }
    tap_ok(fits && holds_sums(&batches[0], counts, 5) &&
               holds_sums(&batches[1], counts, 5),
           "the second batch gives the right sums");
}

/* Tests that a retired run refuses a batch to which `change` was applied. */
static void refuse(struct node *node, void (*change)(struct batch *batch),
                   const char *what)
{
    static const int64_t counts[] = {MOST, 100};
    static struct batch batch;
    struct hvd_run *run;

    fill(&batch, 0, counts, 1);
    run = create(node, 0, &batch);
    change(&batch);
    run = hvd_run_restart(run, &batch.header, batch.entries);
    tap_ok(run == NULL, "a retired run refuses a batch %s", what);
    hvd_run_destroy(run);
}

static void be_longer(struct batch *batch)
{
    batch->memory[1].descriptor.shape[0]++;
}

static void have_one_tensor(struct batch *batch)
{
    batch->header.count = 1;
}

static void be_broadcast(struct batch *batch)
{
    batch->header.kind = HVD_KIND_BROADCAST;
}

static void have_integers(struct batch *batch)
{
    batch->memory[0].descriptor.dtype = batch->memory[1].descriptor.dtype = HVD_INT32;
}

static void be_narrow(struct batch *batch)
{
    batch->memory[0].descriptor.wire = batch->memory[1].descriptor.wire = HVD_BFLOAT16;
}

static void be_greatest(struct batch *batch)
{
    batch->memory[0].descriptor.op = batch->memory[1].descriptor.op = HVD_MAX;
}

static void be_scaled(struct batch *batch)
{
    batch->memory[0].descriptor.prescale = batch->memory[1].descriptor.prescale = 2;
}

static void be_scaled_later(struct batch *batch)
{
    batch->memory[0].descriptor.postscale = batch->memory[1].descriptor.postscale = 2;
}

static void be_joined(struct batch *batch)
{
    batch->memory[0].is_zeros = batch->memory[1].is_zeros = true;
}

/* Runs two batches, the second with the runs of the first. */
static void run_both(struct node *node)
{
    static struct batch batches[RANKS];
    struct hvd_run *runs[RANKS];

    run_first(node, batches, runs);
    run_next(batches, runs);
    hvd_run_destroy(runs[0]);
    hvd_run_destroy(runs[1]);
}

/* Tests that a retired run is not kept if it holds as much memory as a large tensor. */
static void drop_large(struct node *node)
{
    static const struct hvd_batch_header one = {.kind = HVD_KIND_ALLREDUCE, .count = 1};
    static float values[RANKS][LARGE];
    struct hvd_entry memory[RANKS];
    struct hvd_run *runs[RANKS];
    struct hvd_error err = {0};
    bool is_kept = false;

    for (int r = 0; r < RANKS; r++) {
        struct hvd_entry *entry = &memory[r];

        memory[r] = (struct hvd_entry){.descriptor = {.kind = HVD_KIND_ALLREDUCE,
                                                      .op = HVD_SUM,
                                                      .dtype = HVD_FLOAT32,
                                                      .wire = HVD_FLOAT16,
                                                      .ndim = 1,
                                                      .shape = {LARGE},
                                                      .prescale = 1,
                                                      .postscale = 1,
                                                      .name = "large"},
                                       .input = values[r],
                                       .output = values[r]};
        must(hvd_run_create(&node->team[r], &one, &entry, NULL, &runs[r], &err), &err);
    }
    node_finish_runs(runs, RANKS, 1000);
    for (int r = 0; r < RANKS; r++) {
        runs[r] = hvd_run_retire(runs[r]);
        is_kept = is_kept || runs[r] != NULL;
        hvd_run_destroy(runs[r]);
    }
    tap_ok(!is_kept, "a run that holds much memory is not kept");
}

int main(void)
{
    struct node node;

    node_open(&node, RANKS);
    run_both(&node);
    refuse(&node, be_longer, "that is longer");
    refuse(&node, have_one_tensor, "of fewer tensors");
    refuse(&node, be_broadcast, "of another kind");
    refuse(&node, have_integers, "of another type");
    refuse(&node, be_narrow, "that travels as another type");
    refuse(&node, be_greatest, "with another op");
    refuse(&node, be_scaled, "with another prescale");
    refuse(&node, be_scaled_later, "with another postscale");
    refuse(&node, be_joined, "of zeros for a joined rank");
    wire = HVD_FLOAT16;
    tap_note("tensors that travel as float16");
    run_both(&node);
    refuse(&node, be_longer, "that is longer");
    refuse(&node, be_narrow, "that travels as another type");
    refuse(&node, be_scaled, "with another prescale");
    drop_large(&node);
    node_close(&node);
    return tap_done();
}
