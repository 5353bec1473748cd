/* SPDX-License-Identifier: Apache-2.0 */
/* Tests apply.h against the kernel of this machine. */
#include "gpu_binding/apply.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/binding.h"
#include "tests/tap.h"

static struct hvd_cpuset original;

static struct hvd_cpuset only(int cpu)
{
    struct hvd_cpuset set = {{0}};

    hvd_cpuset_add(&set, cpu);
    return set;
}

static int first_cpu(void)
{
    return hvd_cpuset_next(&original, -1);
}

static struct hvd_cpuset current(void)
{
    struct hvd_cpuset cpus = {{0}};

    hvd_affinity_get(&cpus, NULL);
    return cpus;
}

static bool is_current(const struct hvd_cpuset *cpus)
{
    struct hvd_cpuset now = current();

    return hvd_cpuset_is_equal(&now, cpus);
}

/* Returns a plan with one row, for local rank 3; the caller owns the row. */
static struct hvd_plan plan_of(struct hvd_plan_row *row, const struct hvd_cpuset *cpus)
{
    *row = (struct hvd_plan_row){
        .local_rank = 3, .cpus = *cpus, .memory_numa = HVD_NONE, .gpu_index = HVD_NONE};
    return (struct hvd_plan){.mode = HVD_BIND_CORES, .row_count = 1, .rows = row};
}

static void restore(void)
{
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &original);
    struct hvd_cpuset bound;

    hvd_apply_cpus(&plan, 3, NULL, &bound, NULL);
}

static void *read_cpus(void *out)
{
    *(struct hvd_cpuset *)out = current();
    return NULL;
}

static void test_cpus(void)
{
    struct hvd_cpuset one = only(first_cpu());
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &one);
    struct hvd_cpuset bound;
    struct hvd_cpuset inherited = {{0}};
    struct hvd_cpuset limit = {{0}};
    pthread_t thread;

    tap_ok(hvd_apply_cpus(&plan, 3, NULL, &bound, NULL) == 0 && is_current(&one) &&
               hvd_cpuset_is_equal(&bound, &one),
           "thread_is_bound_to_its_row");
    pthread_create(&thread, NULL, read_cpus, &inherited);
    pthread_join(thread, NULL);
    tap_ok(hvd_cpuset_is_equal(&inherited, &one), "later_threads_inherit_the_row");
    tap_ok(hvd_affinity_limit(&limit, NULL) == 0 &&
               hvd_cpuset_is_within(&original, &limit) && is_current(&one),
           "limit_is_found_without_changing_the_mask");
    restore();
    tap_ok(is_current(&original), "row_of_all_cpus_undoes_a_binding");
}

static void test_limit(void)
{
    struct hvd_cpuset one = only(first_cpu());
    struct hvd_cpuset elsewhere = only(HVD_CPUSET_SIZE - 1);
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &original);
    struct hvd_cpuset bound = elsewhere;
    struct hvd_error err = {0};

    tap_ok(hvd_apply_cpus(&plan, 3, &one, &bound, NULL) == 0 && is_current(&one),
           "row_is_cut_to_the_limit");
    restore();
    tap_ok(hvd_apply_cpus(&plan, 3, &elsewhere, &bound, &err) == HVD_ERR_ARG &&
               strstr(err.text, "rank 3") != NULL && is_current(&original),
           "row_outside_the_limit_is_an_error_and_leaves_the_mask");
    plan = plan_of(&row, &elsewhere);
    tap_ok(hvd_apply_cpus(&plan, 3, NULL, &bound, &err) == HVD_ERR_SYS &&
               is_current(&original),
           "cpus_that_do_not_exist_are_an_error");
    tap_ok(hvd_apply_cpus(&plan, 0, NULL, &bound, &err) == HVD_ERR_ARG,
           "rank_without_row_is_an_error");
    plan = plan_of(&row, &one);
    plan.mode = HVD_BIND_NONE;
    tap_ok(hvd_apply_cpus(&plan, 3, NULL, &bound, NULL) == 0 && is_current(&original) &&
               hvd_cpuset_is_equal(&bound, &original),
           "mode_none_binds_nothing");
}

/* Reads the memory policy of this thread, and the first 64 nodes of its mask. Returns
 * false if the kernel refuses to tell. */
static bool read_policy(int *policy, unsigned long *nodes)
{
    unsigned long mask[64] = {0};

    if (syscall(SYS_get_mempolicy, policy, mask, 8 * sizeof(mask), NULL, 0) < 0) {
        return false;
    }
    *nodes = mask[0];
    return true;
}

static void test_memory(void)
{
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &original);
    unsigned long nodes = 0;
    int policy = 0;
    struct hvd_error err = {0};

    tap_ok(hvd_apply_memory(&plan, 3, NULL) == 0,
           "row_without_memory_node_is_no_failure");
    if (!read_policy(&policy, &nodes)) {
        tap_skip("thread_prefers_its_node", "this kernel does not tell memory policies");
        return;
    }
    tap_ok(policy == MPOL_DEFAULT, "row_without_memory_node_keeps_the_default_policy");
    row.memory_numa = 0;
    if (hvd_apply_memory(&plan, 3, &err) < 0 && errno == EPERM) {
        tap_skip("thread_prefers_its_node", "this container forbids set_mempolicy");
        return;
    }
    tap_ok(read_policy(&policy, &nodes) && policy == MPOL_PREFERRED && nodes == 1,
           "thread_prefers_its_node");
    row.memory_numa = 1023;
    tap_ok(hvd_apply_memory(&plan, 3, &err) < 0 && strstr(err.text, "1023") != NULL,
           "node_that_does_not_exist_is_an_error");
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

/* Notes the variables that hvd_apply_env sets, a line each, instead of setting them. */
struct record {
    char text[2048];
    const char *refuse; /* the variable that cannot be set; NULL: none */
};

static int note_variable(void *context, const char *name, const char *value,
                         bool overwrite)
{
    struct record *record = context;
    size_t used = strlen(record->text);

    snprintf(record->text + used, sizeof(record->text) - used, "%s%s=%s\n",
             overwrite ? "" : "?", name, value);
    return record->refuse != NULL && strcmp(record->refuse, name) == 0;
}

static void test_env(void)
{
    struct hvd_cpuset one = only(5);
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &one);
    struct record record = {.text = ""};
    struct hvd_error err = {0};

    hvd_apply_env(&plan, 3, &one, note_variable, &record, NULL);
    tap_ok(strcmp(record.text, "HVD_CPUS=5\nHVD_NIC=\n") == 0,
           "rank_without_gpu_gets_its_cpus_only");
    plan.gpus = (struct hvd_gpu_list){2, {{4, 0}, {6, 1}}};
    row.gpu_index = 1;
    strcpy(row.nic, "mlx5_1:1");
    record.text[0] = '\0';
    hvd_apply_env(&plan, 3, &one, note_variable, &record, NULL);
    tap_ok(strcmp(record.text, "HVD_CPUS=5\nHVD_GPU_LIST=4,6\nHVD_GPU_INDEX=1\n"
                               "?CUDA_DEVICE_ORDER=PCI_BUS_ID\nHVD_NIC=mlx5_1:1\n"
                               "?UCX_NET_DEVICES=mlx5_1:1\n") == 0,
           "user_s_variables_are_left_alone_and_hvd_s_are_replaced");
    record.refuse = "HVD_NIC";
    tap_ok(hvd_apply_env(&plan, 3, &one, note_variable, &record, &err) == HVD_ERR_SYS &&
               strstr(err.text, "HVD_NIC") != NULL &&
               strstr(record.text, "UCX_NET_DEVICES") != NULL,
           "refused_variable_is_named_and_the_others_set");
    setenv("UCX_NET_DEVICES", "eth0", 1);
    setenv("HVD_CPUS", "0-99", 1);
    hvd_apply_env(&plan, 3, &one, NULL, NULL, NULL);
    tap_ok(strcmp(getenv("UCX_NET_DEVICES"), "eth0") == 0 &&
               strcmp(getenv("HVD_CPUS"), "5") == 0 &&
               strcmp(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID") == 0,
           "without_a_setter_variables_go_to_this_process");
}

static void test_all(void)
{
    struct hvd_cpuset one = only(first_cpu());
    struct hvd_cpuset elsewhere = only(HVD_CPUSET_SIZE - 1);
    struct hvd_plan_row row;
    struct hvd_plan plan = plan_of(&row, &one);
    struct record record = {.text = ""};
    struct hvd_cpuset bound = {{0}};
    struct hvd_error err = {0};

    tap_ok(hvd_binding_apply(&plan, 3, note_variable, &record, &bound, &err) == 0 &&
               is_current(&one) && hvd_cpuset_is_equal(&bound, &one),
           "whole_row_is_applied %s", err.text);
    restore();
    plan = plan_of(&row, &elsewhere);
    record.text[0] = '\0';
    tap_ok(hvd_binding_apply(&plan, 3, note_variable, &record, &bound, &err) < 0 &&
               hvd_cpuset_is_equal(&bound, &original) && record.text[0] != '\0',
           "failure_to_bind_reports_the_old_cpus_and_sets_the_rest");
}

int main(void)
{
    if (hvd_affinity_get(&original, NULL) < 0) {
        printf("Bail out! cannot read the own mask\n");
        return 1;
    }
    test_cpus();
    test_limit();
    test_memory();
    test_env();
    test_all();
    return tap_done();
}
