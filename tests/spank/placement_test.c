/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how a rank's cross rank (HOROVOD_CROSS_RANK) is computed from Slurm's short form
 * for the tasks per node, such as "2(x3),1". */
#include "spank/placement.h"

#include "tests/tap.h"

enum {
    NODES_MAX = 12,
    ROUNDS = 5000
};

static bool cross(const struct hvd_spank_placement *placement, const char *text, int rank,
                  int size)
{
    int found_rank = -1;
    int found_size = -1;

    return hvd_spank_placement_cross(placement, text, &found_rank, &found_size) &&
           found_rank == rank && found_size == size;
}

static bool is_unknown(struct hvd_spank_placement placement, const char *text)
{
    int rank = -1;
    int size = -1;

    return !hvd_spank_placement_cross(&placement, text, &rank, &size) && rank == -1 &&
           size == -1;
}

static void test_uneven(void)
{
    struct hvd_spank_placement placement = {.nodes = 2, .tasks = 4, .local_size = 3};

    tap_ok(cross(&placement, "3,1", 0, 2),
           "3 + 1 tasks: the first task of node 0 has cross rank 0 of 2");
    placement.local_rank = 2;
    tap_ok(cross(&placement, "3,1", 0, 1),
           "3 + 1 tasks: the third task of node 0 has cross rank 0 of 1");
    placement =
        (struct hvd_spank_placement){.nodes = 2, .node = 1, .tasks = 4, .local_size = 1};
    tap_ok(cross(&placement, "3,1", 1, 2),
           "3 + 1 tasks: the task of node 1 has cross rank 1 of 2");
    placement = (struct hvd_spank_placement){
        .nodes = 3, .node = 2, .tasks = 5, .local_rank = 1, .local_size = 2};
    tap_ok(cross(&placement, "2,1,2", 1, 2),
           "2 + 1 + 2 tasks: node 1 does not count for the second task of node 2");
}

static void test_unknown(void)
{
    struct hvd_spank_placement placement = {.nodes = 2, .tasks = 4, .local_size = 2};

    tap_ok(is_unknown(placement, ""), "an empty text gives no cross rank");
    tap_ok(is_unknown(placement, "2"), "a text with too few nodes gives no cross rank");
    tap_ok(is_unknown(placement, "2(x3)"),
           "a text with too many nodes gives no cross rank");
    tap_ok(is_unknown(placement, "3,1"),
           "another number of tasks on this node gives no cross rank");
    tap_ok(is_unknown(placement, "2,3"), "a larger total of tasks gives no cross rank");
    tap_ok(is_unknown(placement, "2,1"), "a smaller total of tasks gives no cross rank");
    tap_ok(is_unknown(placement, "2(x2)x"), "trailing characters give no cross rank");
    placement.local_rank = 2;
    tap_ok(is_unknown(placement, "2(x2)"),
           "a local rank that the node does not have gives no cross rank");
}

/* Writes counts in Slurm's form; neighbours with equal counts become "N(xM)". */
static void write_counts(const int *counts, int nodes, char *text, size_t bytes)
{
    size_t used = 0;

    for (int i = 0; i < nodes;) {
        int run = 1;

        while (i + run < nodes && counts[i + run] == counts[i]) {
            run++;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", i > 0 ? "," : "",
                                 counts[i]);
        if (run > 1) {
            used += (size_t)snprintf(text + used, bytes - used, "(x%d)", run);
        }
        i += run;
    }
}

static bool check_layout(const int *counts, int nodes)
{
    char text[256];
    int tasks = 0;
    bool is_right = true;

    write_counts(counts, nodes, text, sizeof(text));
    for (int i = 0; i < nodes; i++) {
        tasks += counts[i];
    }
    for (int node = 0; node < nodes; node++) {
        for (int local = 0; local < counts[node]; local++) {
            struct hvd_spank_placement placement = {nodes, node, tasks, local,
                                                    counts[node]};
            int rank = 0;
            int size = 0;

            for (int i = 0; i < nodes; i++) {
                size += counts[i] > local ? 1 : 0;
                rank += i < node && counts[i] > local ? 1 : 0;
            }
            is_right = is_right && cross(&placement, text, rank, size);
        }
    }
    return is_right;
}

static void test_random_layouts(unsigned seed)
{
    unsigned state = seed;
    int wrong = 0;

    for (int round = 0; round < ROUNDS; round++) {
        int counts[NODES_MAX];
        int nodes;

        state = state * 1664525u + 1013904223u;
        nodes = 1 + (int)((state >> 8) % NODES_MAX);
        for (int i = 0; i < nodes; i++) {
            state = state * 1664525u + 1013904223u;
            counts[i] = 1 + (int)((state >> 8) % 3);
        }
        wrong += check_layout(counts, nodes) ? 0 : 1;
    }
    tap_ok(wrong == 0, "%d random layouts: every task as counted one by one", ROUNDS);
}

int main(void)
{
    test_uneven();
    test_unknown();
    test_random_layouts(tap_seed(20261121));
    return tap_done();
}
