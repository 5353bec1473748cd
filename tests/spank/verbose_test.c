/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the text of --hvd=verbose: a line for each node, its warnings, and one table. */
#include "spank/verbose.h"

#include <string.h>

#include "tests/tap.h"

static struct hvd_topology topology; /* a node with eight GPUs */

static const char *printed(const struct hvd_spank_node_binding *binding)
{
    static char text[65536];
    FILE *file = fmemopen(text, sizeof(text), "w");

    hvd_spank_verbose_print(binding, file);
    fclose(file);
    return text;
}

static bool has_table(const char *text)
{
    return strstr(text, "\nlocal rank gpu pci") != NULL;
}

static struct hvd_plan plan_for(int ranks, enum hvd_bind_mode mode)
{
    const struct hvd_plan_input input = {
        .topology = &topology, .rank_count = ranks, .options = {.mode = mode}};
    struct hvd_plan plan = {0};

    if (hvd_plan_make(&input, &plan, NULL) != 0) {
        tap_ok(false, "a plan for %d ranks", ranks);
    }
    return plan;
}

static void test_nodes(void)
{
    struct hvd_plan plan = plan_for(8, HVD_BIND_CORES);
    struct hvd_spank_node_binding binding = {
        .host = "n1", .ranks = 8, .threads = "5", .topology = &topology, .plan = &plan};

    tap_ok(strcmp(printed(&binding),
                  "hvd: n1: 8 ranks, 8 GPUs, 80 cpus, bind=cores, OMP_NUM_THREADS=5\n") ==
               0,
           "a node without warnings prints one line");
    binding.is_first_node = true;
    tap_ok(strncmp(printed(&binding), "hvd: n1: 8 ranks", 16) == 0 &&
               strstr(printed(&binding), "\nhvd: binding on n1\n") != NULL &&
               has_table(printed(&binding)),
           "the first node of a step prints its table below the line");
    binding.is_first_node = false;
    binding.failure = "no permission";
    tap_ok(strstr(printed(&binding), ", not applied: no permission\n") != NULL &&
               has_table(printed(&binding)),
           "a node whose ranks are not bound as planned prints its table and the reason");
    binding.failure = NULL;
    binding.is_isolated = true;
    tap_ok(strstr(printed(&binding), "8 ranks, each with GPUs of its own, ") != NULL,
           "if Slurm hides GPUs of other ranks, GPUs are not counted");
    hvd_plan_finish(&plan);
}

static void test_warnings(void)
{
    struct hvd_plan plan = plan_for(9, HVD_BIND_SOCKET);
    struct hvd_spank_node_binding binding = {
        .host = "n2", .ranks = 9, .threads = "", .topology = &topology, .plan = &plan};

    tap_ok(strcmp(printed(&binding),
                  "hvd: n2: 9 ranks, 8 GPUs, 80 cpus, bind=socket, 1 warning\n"
                  "hvd: n2: 9 ranks share 8 gpus\n") == 0,
           "warnings follow the line of their node, without a table");
    hvd_plan_finish(&plan);
}

int main(int count, char **arguments)
{
    const struct hvd_topology_source source = {.xml_file = count > 1 ? arguments[1] : ""};

    if (hvd_topology_load(&topology, &source, NULL) != 0) {
        tap_ok(false, "the topology file is read");
        return tap_done();
    }
    test_nodes();
    test_warnings();
    hvd_topology_finish(&topology);
    return tap_done();
}
