/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to agree among many ranks: the simulated job of agreement_sim.h, whose agreements
 * are the real ones and whose messages stay in memory.
 *
 *   agreement_scale [RANKS...]     default: 16 64 256 1024
 *
 * Prints a Markdown table for the 161 gradients of ResNet-50, all submitted at once, and one at a
 * time, each when the one before is done (what is sent then is the most that can be):
 *
 *   levels    of the tree below rank 0
 *   step      first: described in full; ids: cached, no replay; replayed: the same steps go on;
 *             join: no step, all ranks join
 *   messages  sent and received by a rank: mean of all, and of the busiest; so bytes
 *   hops      messages one after the other until the last rank knows what to do */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/tree.h"
#include "contrib/bench/agreement_sim/agreement_sim.h"

enum {
    TENSORS = 161,
    REPLAYED_STEPS = 20 /* more than a replay needs to come about */
};

/* --- the gradients: contrib/bench/gradient_lists.py --- */

struct gradients {
    char names[TENSORS][48];
    int64_t elements[TENSORS];
    int count;
};

static void add(struct gradients *gradients, int64_t elements, const char *layer,
                const char *part)
{
    snprintf(gradients->names[gradients->count], sizeof(gradients->names[0]), "%s.%s",
             layer, part);
    gradients->elements[gradients->count++] = elements;
}

/* A convolution and the batch norm after it. */
static void add_convolution(struct gradients *gradients, const char *block, int number,
                            int64_t weights, int64_t channels)
{
    char layer[32];

    snprintf(layer, sizeof(layer), "%sconv%d", block, number);
    add(gradients, weights, layer, "weight");
    snprintf(layer, sizeof(layer), "%sbn%d", block, number);
    add(gradients, channels, layer, "weight");
    add(gradients, channels, layer, "bias");
}

static void add_block(struct gradients *gradients, const char *name, int64_t channels,
                      int64_t width, bool has_shortcut)
{
    add_convolution(gradients, name, 1, channels * width, width);
    add_convolution(gradients, name, 2, 9 * width * width, width);
    add_convolution(gradients, name, 3, 4 * width * width, 4 * width);
    if (has_shortcut) {
        add_convolution(gradients, name, 4, 4 * width * channels, 4 * width);
    }
}

static void make_gradients(struct gradients *gradients)
{
    static const int blocks[] = {3, 4, 6, 3};
    int64_t channels = 64;

    add_convolution(gradients, "", 1, 64 * 3 * 7 * 7, 64);
    for (int stage = 0; stage < 4; stage++) {
        int64_t width = 64 << stage;

        for (int block = 0; block < blocks[stage]; block++) {
            char name[32];

            snprintf(name, sizeof(name), "layer%d.%d.", stage + 1, block);
            add_block(gradients, name, channels, width, block == 0);
            channels = 4 * width;
        }
    }
    add(gradients, 1000 * channels, "fc", "weight");
    add(gradients, 1000, "fc", "bias");
}

/* --- one step --- */

static void fail(const char *why)
{
    fprintf(stderr, "agreement_scale: %s\n", why);
    exit(1);
}

/* Submits tensors on all ranks and runs them. */
static void run_tensors(struct sim *sim, const struct hvd_proposal *const *tensors,
                        int count)
{
    size_t all = (size_t)sim->layout.size * (size_t)count;
    struct hvd_request **requests = calloc(all, sizeof(requests[0]));
    size_t made = 0;

    for (int rank = 0; rank < sim->layout.size; rank++) {
        sim_wait(sim, rank, true);
        for (int i = 0; i < count; i++) {
            requests[made++] = sim_submit(sim, rank, &tensors[i], 1);
        }
    }
    sim_settle_in_turn(sim);
    for (size_t i = 0; i < all; i++) {
        if (!sim_has_ended(requests[i])) {
            fail("a tensor does not end");
        }
        hvd_request_destroy(requests[i]);
    }
    free(requests);
    if (sim->fault[0] != '\0') {
        fail(sim->fault);
    }
}

enum step {
    AT_ONCE,
    ONE_BY_ONE,
    JOIN
};

static void run_step(struct sim *sim, const struct gradients *gradients, enum step step)
{
    static struct hvd_proposal join = {.kind = HVD_KIND_JOIN, .name = "hvd.join"};
    static struct hvd_proposal proposals[TENSORS];
    const struct hvd_proposal *tensors[TENSORS] = {&join};

    if (step == JOIN) {
        run_tensors(sim, tensors, 1);
        return;
    }
    for (int i = 0; i < TENSORS; i++) {
        proposals[i] = sim_allreduce(gradients->names[i], gradients->elements[i]);
        tensors[i] = &proposals[i];
    }
    for (int i = 0; i < TENSORS; i += step == AT_ONCE ? TENSORS : 1) {
        run_tensors(sim, tensors + i, step == AT_ONCE ? TENSORS : 1);
    }
}

/* --- what it cost --- */

struct cost {
    double messages; /* per rank, mean */
    double bytes;
    uint64_t most_messages;
    uint64_t most_bytes;
    int64_t hops;
};

static void count_rank(const struct sim *sim, int rank, uint64_t *messages,
                       uint64_t *bytes)
{
    struct hvd_agreement_counts counts;

    hvd_agreement_count(sim->ranks[rank].agreement, &counts);
    *messages = counts.messages_up + counts.messages_down + counts.received;
    *bytes = counts.bytes_sent + counts.bytes_received;
}

static struct cost measure_step(struct sim *sim, const struct gradients *gradients,
                                enum step step)
{
    size_t size = (size_t)sim->layout.size;
    uint64_t *before = calloc(2 * size, sizeof(before[0]));
    struct cost cost = {0};

    for (size_t i = 0; i < size; i++) {
        count_rank(sim, (int)i, &before[2 * i], &before[2 * i + 1]);
        sim->ranks[i].chain = 0;
    }
    run_step(sim, gradients, step);
    for (size_t i = 0; i < size; i++) {
        uint64_t messages, bytes;

        count_rank(sim, (int)i, &messages, &bytes);
        messages -= before[2 * i];
        bytes -= before[2 * i + 1];
        cost.messages += (double)messages / (double)size;
        cost.bytes += (double)bytes / (double)size;
        cost.most_messages =
            messages > cost.most_messages ? messages : cost.most_messages;
        cost.most_bytes = bytes > cost.most_bytes ? bytes : cost.most_bytes;
        cost.hops = sim->ranks[i].chain > cost.hops ? sim->ranks[i].chain : cost.hops;
    }
    free(before);
    return cost;
}

/* --- the table --- */

static int levels_of(const struct sim *sim)
{
    int most = 0;

    for (int rank = 0; rank < sim->layout.size; rank++) {
        int levels = 0;

        for (int at = rank; hvd_tree_parent(&sim->layout, at) >= 0; levels++) {
            at = hvd_tree_parent(&sim->layout, at);
        }
        most = levels > most ? levels : most;
    }
    return most;
}

static void print_row(struct sim *sim, const struct gradients *gradients, enum step step,
                      const char *name)
{
    static const char *const submitted[] = {"at once", "one by one", "at once"};
    struct cost cost = measure_step(sim, gradients, step);

    printf("| %d | %d | %d | %s | %s | %.1f | %lu | %.0f | %lu | %ld |\n",
           sim->layout.size, sim->layout.nodes, levels_of(sim), submitted[step], name,
           cost.messages, (unsigned long)cost.most_messages, cost.bytes,
           (unsigned long)cost.most_bytes, (long)cost.hops);
    fflush(stdout);
}

static void measure(const int *nodes, enum step step, const struct gradients *gradients)
{
    struct hvd_agreement_settings settings = sim_settings();
    struct sim sim;

    settings.may_replay = false;
    sim_init_unchecked(&sim, nodes, &settings);
    print_row(&sim, gradients, step, "first");
    print_row(&sim, gradients, step, "ids");
    if (step == AT_ONCE) {
        print_row(&sim, gradients, JOIN, "join");
    }
    sim_finish(&sim);
    sim_init_unchecked(&sim, nodes, NULL);
    for (int i = 0; i < REPLAYED_STEPS; i++) {
        run_step(&sim, gradients, step);
    }
    print_row(&sim, gradients, step, "replayed");
    sim_finish(&sim);
}

static void measure_all(const struct gradients *gradients, int ranks)
{
    static const int per_node[] = {8, 1};

    int *nodes = calloc((size_t)ranks + 1, sizeof(nodes[0]));

    for (int i = 0; i < 2; i++) {
        if (ranks % per_node[i] == 0) {
            for (int n = 0; n < ranks; n++) {
                nodes[n] = n < ranks / per_node[i] ? per_node[i] : 0;
            }
            measure(nodes, AT_ONCE, gradients);
            measure(nodes, ONE_BY_ONE, gradients);
        }
    }
    free(nodes);
}

int main(int argc, char **argv)
{
    static const int usual[] = {16, 64, 256, 1024};
    static struct gradients gradients;

    make_gradients(&gradients);
    printf("| ranks | nodes | levels | submitted | step | messages, mean | busiest "
           "| bytes, mean | busiest | hops |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; argc == 1 && i < 4; i++) {
        measure_all(&gradients, usual[i]);
    }
    for (int i = 1; i < argc; i++) {
        if (atoi(argv[i]) < 1) {
            fail("RANKS are numbers above 0");
        }
        measure_all(&gradients, atoi(argv[i]));
    }
    return 0;
}
