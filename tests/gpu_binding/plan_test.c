/* SPDX-License-Identifier: Apache-2.0 */
/* Tests plans and bindings that the expected outputs of hvd-info (expected/) do not
 * cover. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/binding.h"
#include "tests/gpu_binding/node_file.h"
#include "tests/tap.h"

static const char *root;

static struct hvd_topology load(const char *name)
{
    struct hvd_topology node;

    if (!node_file_load(root, name, &node)) {
        printf("Bail out! %s is not in the tree\n", name);
        exit(1);
    }
    return node;
}

static struct hvd_cpuset cpus_of(const char *text)
{
    struct hvd_cpuset set = {{0}};

    hvd_cpulist_parse(text, &set, NULL);
    return set;
}

static bool is_bound_to(const struct hvd_plan *plan, int local_rank, const char *text)
{
    char found[1024];

    hvd_cpulist_format(&plan->rows[local_rank].cpus, found, sizeof(found));
    if (strcmp(found, text) != 0) {
        tap_note("rank %d has cpus %s, not %s", local_rank, found, text);
        return false;
    }
    return true;
}

static bool has_note(const struct hvd_plan *plan, const char *words)
{
    for (int i = 0; i < plan->note_count; i++) {
        if (strstr(plan->notes[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

/* Makes a plan; ends the program if that fails. */
static struct hvd_plan plan_for(const struct hvd_topology *node,
                                const struct hvd_binding_step *step)
{
    struct hvd_plan plan = {0};
    struct hvd_error err;

    if (hvd_binding_plan(node, step, &plan, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return plan;
}

static void test_auto_mode(struct hvd_topology *node)
{
    struct hvd_cpuset half = cpus_of("0-4,40-44");
    struct hvd_cpuset single = cpus_of("0-4");
    struct hvd_cpuset all = cpus_of("0-79");
    struct hvd_binding_step step = {.rank_count = 4, .task_mask = &half};
    struct hvd_plan plan = plan_for(node, &step);

    tap_ok(plan.mode == HVD_BIND_CORES && plan.rows[0].core_count == 5 &&
               is_bound_to(&plan, 0, "0-4,40-44") && is_bound_to(&plan, 1, "5-9,45-49"),
           "bound_task_keeps_its_number_of_cores");
    hvd_plan_finish(&plan);
    step.task_mask = &single;
    plan = plan_for(node, &step);
    tap_ok(is_bound_to(&plan, 0, "0-4"), "bound_task_keeps_its_number_of_threads");
    hvd_plan_finish(&plan);
    step.task_mask = &all;
    plan = plan_for(node, &step);
    tap_ok(plan.mode == HVD_BIND_SOCKET, "unbound_task_gets_the_socket");
    hvd_plan_finish(&plan);
    step.task_mask = &half;
    step.options.mode = HVD_BIND_SOCKET;
    plan = plan_for(node, &step);
    tap_ok(plan.mode == HVD_BIND_SOCKET, "mode_of_the_user_wins_over_the_mask");
    hvd_plan_finish(&plan);
    step.options = (struct hvd_plan_options){.cpus_per_rank = 2};
    plan = plan_for(node, &step);
    tap_ok(plan.mode == HVD_BIND_CORES && plan.rows[0].core_count == 2,
           "limit_of_the_user_wins_over_the_mask");
    hvd_plan_finish(&plan);
}

/* Two sockets have 20 cores each; the GPUs of the first four ranks are on one socket. */
static void test_threads(struct hvd_topology *node)
{
    static const struct {
        enum hvd_bind_mode mode;
        int ranks, threads;
    } cases[] = {
        {HVD_BIND_CORES, 4, 5}, {HVD_BIND_SOCKET, 4, 5}, {HVD_BIND_CORES, 50, 1},
        {HVD_BIND_NONE, 1, 40}, {HVD_BIND_NONE, 3, 13},  {HVD_BIND_NONE, 99, 1},
    };
    bool passed = true;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hvd_binding_step step = {.rank_count = cases[i].ranks,
                                        .options.mode = cases[i].mode};
        struct hvd_plan plan = plan_for(node, &step);
        int found = hvd_plan_thread_count(&plan, 0);

        passed = passed && found == cases[i].threads;
        tap_note("%d ranks, mode %s: %d threads", cases[i].ranks,
                 hvd_bind_mode_name(cases[i].mode), found);
        hvd_plan_finish(&plan);
    }
    tap_ok(passed, "thread_count_is_the_rank_s_part_of_its_cores");
}

/* Each socket has 20 cores, 40 cpus and 25 ranks. */
static void test_few_cores(struct hvd_topology *node)
{
    struct hvd_binding_step step = {
        .rank_count = 50, .options = {.mode = HVD_BIND_CORES, .cpus_per_rank = 1}};
    struct hvd_plan plan = plan_for(node, &step);
    bool passed = true;

    for (int i = 0; i < plan.row_count; i++) {
        passed = passed && hvd_cpuset_count(&plan.rows[i].cpus) == 1;
    }
    tap_ok(passed, "limit_of_cores_limits_cpus_of_ranks_that_share_cores");
    hvd_plan_finish(&plan);
}

static void test_mode_socket(struct hvd_topology *node)
{
    struct hvd_binding_step step = {.rank_count = 8,
                                    .options = {.mode = HVD_BIND_SOCKET}};
    struct hvd_plan plan = plan_for(node, &step);

    tap_ok(is_bound_to(&plan, 0, "0-4,40-44") && is_bound_to(&plan, 3, "15-19,55-59"),
           "ranks_of_a_socket_divide_its_cores");
    hvd_plan_finish(&plan);
    step.rank_count = 50;
    plan = plan_for(node, &step);
    tap_ok(is_bound_to(&plan, 0, "0-19,40-59") && is_bound_to(&plan, 49, "0-19,40-59"),
           "more_ranks_than_cores_share_their_socket");
    hvd_plan_finish(&plan);
}

static void test_mode_none(struct hvd_topology *node)
{
    struct hvd_binding_step step = {.rank_count = 8, .options.mode = HVD_BIND_NONE};
    struct hvd_plan plan = plan_for(node, &step);
    bool passed = true;

    for (int i = 0; i < plan.row_count; i++) {
        passed = passed && hvd_cpuset_is_equal(&plan.rows[i].cpus, &node->allowed) &&
                 plan.rows[i].memory_numa == HVD_NONE && !plan.rows[i].is_far;
    }
    tap_ok(passed && plan.note_count == 0, "mode_none_leaves_cpus_and_memory");
    tap_ok(strcmp(plan.rows[7].nic, "mlx5_3:1") == 0, "mode_none_still_names_the_card");
    hvd_plan_finish(&plan);
}

static void test_nics(struct hvd_topology *node)
{
    struct hvd_binding_step step = {.rank_count = 1, .gpu_numbers = "4"};
    struct hvd_plan plan = plan_for(node, &step);

    tap_ok(strcmp(plan.rows[0].nic, "mlx5_2:1") == 0,
           "card_on_the_gpu_s_switch_is_taken");
    hvd_plan_finish(&plan);
    /* Makes all cards equally near. A few ranks then get several cards each, and many
     * ranks take turns. */
    for (int i = 0; i < node->gpu_count * node->nic_count; i++) {
        node->closeness[i] = HVD_CLOSE_SOCKET;
    }
    step.gpu_numbers = NULL;
    step.rank_count = 2;
    plan = plan_for(node, &step);
    tap_ok(strcmp(plan.rows[0].nic, "mlx5_0:1,mlx5_1:1") == 0 &&
               strcmp(plan.rows[1].nic, "mlx5_2:1,mlx5_3:1") == 0,
           "few_ranks_divide_the_cards");
    hvd_plan_finish(&plan);
    step.rank_count = 6;
    plan = plan_for(node, &step);
    tap_ok(strcmp(plan.rows[3].nic, "mlx5_3:1") == 0 &&
               strcmp(plan.rows[4].nic, "mlx5_0:1") == 0,
           "many_ranks_take_cards_in_turn");
    hvd_plan_finish(&plan);
    step.options.nic_off = true;
    plan = plan_for(node, &step);
    tap_ok(plan.rows[0].nic[0] == '\0', "nic_off_names_no_card");
    hvd_plan_finish(&plan);
    step.options.nic_off = false;
    node->nics[1].is_infiniband = node->nics[2].is_infiniband = false;
    node->nics[3].is_active = false;
    plan = plan_for(node, &step);
    tap_ok(plan.rows[0].nic[0] == '\0', "single_usable_card_is_not_named");
    hvd_plan_finish(&plan);
}

static void test_memory_not_allowed(struct hvd_topology *node)
{
    struct hvd_binding_step step = {.rank_count = 4};
    struct hvd_plan plan;

    node->numas[1].is_allowed = false;
    plan = plan_for(node, &step);
    tap_ok(plan.rows[0].memory_numa == 0 && plan.rows[2].memory_numa == HVD_NONE &&
               !plan.rows[2].is_far && has_note(&plan, "rank 2"),
           "forbidden_memory_node_is_not_preferred");
    hvd_plan_finish(&plan);
    node->numas[1].is_allowed = true;
}

static void test_fake_gpus(struct hvd_topology *node)
{
    struct hvd_binding_step step = {
        .rank_count = 4, .gpu_numbers = "0-3", .options.mode = HVD_BIND_CORES};
    struct hvd_plan plan;

    node->gpu_count = 0;
    plan = plan_for(node, &step);
    tap_ok(plan.gpus.count == 4 && plan.rows[3].gpu_index == 3 &&
               plan.rows[3].gpu.number == 3 && plan.rows[3].socket == 1 &&
               plan.rows[3].memory_numa == HVD_NONE &&
               is_bound_to(&plan, 0, "0-18:2,40-58:2"),
           "ranks_of_gpus_without_pci_are_spread_over_sockets");
    tap_ok(has_note(&plan, "4 of 4 gpus are not found on PCI"),
           "gpus_without_pci_are_noted");
    hvd_plan_finish(&plan);
    step.gpu_numbers = NULL;
    step.gpu_count = 2;
    plan = plan_for(node, &step);
    tap_ok(plan.rows[3].gpu_index == 1, "counted_gpus_are_shared_in_turn");
    hvd_plan_finish(&plan);
    node->gpu_count = 4;
}

static void test_slurm_cores(struct hvd_topology *node)
{
    struct hvd_binding_step step = {
        .rank_count = 2, .cores = "0-1,20", .options.mode = HVD_BIND_CORES};
    struct hvd_plan plan = plan_for(node, &step);

    tap_ok(is_bound_to(&plan, 0, "0,40") && is_bound_to(&plan, 1, "2,42") &&
               hvd_cpuset_has(&plan.allowed, 1),
           "slurm_cores_are_logical_cores");
    hvd_plan_finish(&plan);
    step.cores = "100-101";
    plan = plan_for(node, &step);
    tap_ok(hvd_cpuset_count(&plan.allowed) == 80 && has_note(&plan, "cores 100-101"),
           "cores_that_the_node_lacks_are_noted");
    hvd_plan_finish(&plan);
    step.cores = "38-45";
    plan = plan_for(node, &step);
    tap_ok(hvd_cpuset_count(&plan.allowed) == 4, "cores_that_the_node_has_are_kept");
    hvd_plan_finish(&plan);
}

static void test_alone(struct hvd_topology *node)
{
    struct hvd_cpuset mask = cpus_of("0-3,40-43");
    struct hvd_binding_step step = {.task_mask = &mask, .gpu_numbers = "2"};
    struct hvd_plan plan;
    struct hvd_error err;

    if (hvd_binding_plan_alone(node, &step, 2, &plan, &err) < 0) {
        tap_ok(false, "%s", err.text);
        return;
    }
    tap_ok(plan.row_count == 1 && hvd_plan_row_of(&plan, 2) == plan.rows &&
               hvd_plan_row_of(&plan, 0) == NULL,
           "isolated_rank_keeps_its_number");
    tap_ok(is_bound_to(&plan, 0, "1,3,41,43") && plan.rows[0].memory_numa == 1,
           "isolated_rank_takes_its_mask_near_its_gpu");
    hvd_plan_finish(&plan);
}

/* Tests a rank whose GPU is on a socket that the step may not use. Four sockets in a row
 * have one cpu each; the GPU is on socket 3, and cpus 0-2 are allowed. */
static void test_nearest_socket(void)
{
    struct hvd_cpu cpus[4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
    struct hvd_numa numas[4] = {{0, 0, true}, {1, 1, true}, {2, 2, true}, {3, 3, true}};
    int distance[16] = {10, 21, 31, 41, 21, 10, 21, 31, 31, 21, 10, 21, 41, 31, 21, 10};
    struct hvd_gpu gpu = {.bus = "0000:af:00.0", .socket = 3, .numa = 3};
    struct hvd_topology node = {
        .allowed = cpus_of("0-2"),
        .cpu_count = 4,
        .cpus = cpus,
        .core_count = 4,
        .numa_count = 4,
        .numas = numas,
        .socket_count = 4,
        .socket_distance = distance,
        .gpu_count = 1,
        .gpus = &gpu,
    };
    struct hvd_binding_step step = {.rank_count = 1};
    struct hvd_plan plan = plan_for(&node, &step);

    tap_ok(plan.rows[0].is_far && plan.rows[0].socket == 2,
           "far_rank_goes_to_the_nearest_socket");
    tap_ok(has_note(&plan,
                    "rank 0: gpu af:00 is on socket 3, which the step may not use; "
                    "bound to socket 2"),
           "far_rank_is_noted");
    hvd_plan_finish(&plan);
}

static void refuses(const struct hvd_topology *node, const struct hvd_binding_step *step,
                    const char *words, const char *promise)
{
    struct hvd_plan plan = {.row_count = 7};
    struct hvd_error err = {0};
    int status = hvd_binding_plan(node, step, &plan, &err);

    if (!tap_ok(status < 0 && strstr(err.text, words) != NULL && plan.row_count == 7,
                "%s", promise)) {
        tap_note("%d: %s", status, err.text);
    }
}

static void test_bad_input(const struct hvd_topology *node)
{
    struct hvd_cpuset outside = cpus_of("500");

    refuses(node, &(struct hvd_binding_step){0}, "0 ranks", "no_ranks_are_refused");
    refuses(node, &(struct hvd_binding_step){.rank_count = 5000}, "4096",
            "too_many_ranks_are_refused");
    refuses(node, &(struct hvd_binding_step){.rank_count = 1, .cpus = &outside}, "500",
            "cpus_of_another_node_are_refused");
    refuses(node, &(struct hvd_binding_step){.rank_count = 1, .cores = "1-x"}, "1-x",
            "bad_cores_are_refused");
    refuses(node, &(struct hvd_binding_step){.rank_count = 1, .gpu_numbers = "x"}, "'x'",
            "bad_gpus_are_refused");
    refuses(node,
            &(struct hvd_binding_step){.rank_count = 1, .options.cpus_per_rank = -1},
            "-1", "negative_limit_is_refused");
    refuses(node, &(struct hvd_binding_step){.rank_count = 1, .gpu_count = 65}, "65",
            "too_many_gpus_are_refused");
}

static void test_bad_files(void)
{
    struct hvd_topology node = {.cpu_count = 3};
    struct hvd_error err = {0};

    tap_ok(hvd_topology_load(&node,
                             &(struct hvd_topology_source){.xml_file = "/nonexistent"},
                             &err) == HVD_ERR_ARG &&
               strstr(err.text, "/nonexistent") != NULL && node.cpu_count == 3,
           "missing_file_is_named");
    tap_ok(hvd_topology_load(&node,
                             &(struct hvd_topology_source){.xml_file = "/etc/passwd"},
                             &err) == HVD_ERR_ARG &&
               strstr(err.text, "/etc/passwd") != NULL,
           "file_without_topology_is_named");
}

static void test_finish(const struct hvd_topology *node)
{
    struct hvd_binding_step step = {.rank_count = 4};
    struct hvd_plan plan = plan_for(node, &step);

    hvd_plan_finish(&plan);
    hvd_plan_finish(&plan);
    hvd_plan_finish(NULL);
    tap_ok(plan.rows == NULL, "plan_may_be_finished_twice");
}

int main(int argc, char **argv)
{
    root = argc > 1 ? argv[1] : ".";
    struct hvd_topology c4140 = load("built-c4140-4xv100");
    struct hvd_topology dgx1v = load("built-dgx1v-8xv100");

    test_auto_mode(&dgx1v);
    test_threads(&dgx1v);
    test_few_cores(&dgx1v);
    test_mode_socket(&dgx1v);
    test_mode_none(&dgx1v);
    test_nics(&dgx1v);
    test_memory_not_allowed(&c4140);
    test_fake_gpus(&c4140);
    test_slurm_cores(&c4140);
    test_alone(&c4140);
    test_nearest_socket();
    test_bad_input(&c4140);
    test_bad_files();
    test_finish(&c4140);
    hvd_topology_finish(&c4140);
    hvd_topology_finish(&dgx1v);
    return tap_done();
}
