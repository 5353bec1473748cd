/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what hvd-info reads from the environment of a Slurm job. */
#include "contrib/info/job.h"

#include <string.h>

#include "tests/tap.h"

struct variable {
    const char *name;
    const char *value;
};

static const struct variable *variables;

static const char *look_up(const char *name)
{
    for (int i = 0; variables[i].name != NULL; i++) {
        if (strcmp(variables[i].name, name) == 0) {
            return variables[i].value;
        }
    }
    return NULL;
}

static struct hvd_info_job read_job(const struct variable *given)
{
    struct hvd_info_job job;

    variables = given;
    hvd_info_job_read(look_up, &job);
    return job;
}

static bool is_from(const char *source, const char *expected)
{
    return source != NULL && strcmp(source, expected) == 0;
}

static void test_counts(void)
{
    tap_ok(hvd_info_count_of("4", 0) == 4, "single_count");
    tap_ok(hvd_info_count_of("2(x3),1", 0) == 2 && hvd_info_count_of("2(x3),1", 2) == 2 &&
               hvd_info_count_of("2(x3),1", 3) == 1,
           "count_of_each_node");
    tap_ok(hvd_info_count_of("2(x3),1", 4) == 0, "node_beyond_the_list_has_no_count");
    tap_ok(hvd_info_count_of(NULL, 0) == 0 && hvd_info_count_of("", 0) == 0 &&
               hvd_info_count_of("x", 0) == 0 && hvd_info_count_of("-2", 0) == 0 &&
               hvd_info_count_of("2(x0)", 0) == 0 && hvd_info_count_of("2(x", 1) == 0 &&
               hvd_info_count_of("99999999999999999999", 0) == 0,
           "missing_or_malformed_counts_are_0");
}

static void test_batch(void)
{
    static const struct variable lone_gpus[] = {
        {"SLURM_JOB_ID", "7"},         {"SLURM_TASKS_PER_NODE", "1(x2)"},
        {"SLURMD_NODENAME", "n1"},     {"SLURM_GPUS_ON_NODE", "4"},
        {"SLURM_JOB_GPUS", "0,1,2,3"}, {NULL, NULL}};
    static const struct variable with_tasks[] = {{"SLURM_JOB_ID", "7"},
                                                 {"SLURM_NTASKS", "3"},
                                                 {"SLURM_TASKS_PER_NODE", "2,1"},
                                                 {"SLURM_NODEID", "1"},
                                                 {"SLURM_GPUS_ON_NODE", "4"},
                                                 {"SLURM_CPUS_PER_TASK", "8"},
                                                 {NULL, NULL}};
    struct hvd_info_job job = read_job(lone_gpus);

    tap_ok(!job.is_elsewhere, "batch_script_is_on_a_node_of_the_job");
    tap_ok(job.is_job && !job.is_step && job.rank_count == 4 &&
               is_from(job.rank_source, "SLURM_GPUS_ON_NODE"),
           "job_without_tasks_gets_a_rank_per_gpu");
    tap_ok(is_from(job.gpu_numbers, "0,1,2,3") &&
               is_from(job.gpu_source, "SLURM_JOB_GPUS") && job.cpus_per_task == 0,
           "gpus_of_the_job_are_named");
    job = read_job(with_tasks);
    tap_ok(job.is_elsewhere, "shell_of_salloc_is_not_on_a_node_of_the_job");
    tap_ok(job.rank_count == 1 && is_from(job.rank_source, "SLURM_TASKS_PER_NODE"),
           "job_with_tasks_gets_the_number_on_its_node");
    tap_ok(job.gpu_numbers == NULL && job.gpu_count == 4 &&
               is_from(job.gpu_source, "SLURM_GPUS_ON_NODE") && job.cpus_per_task == 8,
           "gpus_are_counted_if_no_variable_names_them");
}

static void test_step(void)
{
    static const struct variable step[] = {{"SLURM_JOB_ID", "7"},
                                           {"SLURM_STEP_ID", "0"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                           {"SLURM_NTASKS_PER_NODE", "4"},
                                           {"SLURM_NODEID", "1"},
                                           {"SLURM_STEP_GPUS", "2,3"},
                                           {"SLURM_JOB_GPUS", "0,1,2,3"},
                                           {"CUDA_VISIBLE_DEVICES", "0,1"},
                                           {NULL, NULL}};
    struct hvd_info_job job = read_job(step);

    tap_ok(job.is_step && job.rank_count == 2 &&
               is_from(job.rank_source, "SLURM_STEP_TASKS_PER_NODE"),
           "step_s_tasks_win_over_the_job_s");
    tap_ok(is_from(job.gpu_numbers, "2,3") && is_from(job.visible_devices, "0,1"),
           "step_s_gpus_win_over_the_job_s");
}

static void test_no_job(void)
{
    static const struct variable stray[] = {
        {"SLURM_NTASKS_PER_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "1"}, {NULL, NULL}};
    struct hvd_info_job job = read_job(stray);

    tap_ok(!job.is_job && job.rank_count == 0 && job.rank_source == NULL,
           "other_variables_are_ignored_without_a_job");
    tap_ok(is_from(job.visible_devices, "1"), "visible_devices_count_without_a_job_too");
}

int main(void)
{
    test_counts();
    test_batch();
    test_step();
    test_no_job();
    return tap_done();
}
