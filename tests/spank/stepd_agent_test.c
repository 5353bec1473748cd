/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside a stand-in for slurmstepd if the only task of a node starts the
 * ranks itself, as torchrun does. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/stepd_side.h"
#include "tests/tap.h"

static const char *dgx_path; /* a node with eight GPUs and a network card per pair */

static void task_has(struct fake_plugin *plugin, const char *variables,
                     const char *promise)
{
    tap_ok(side_task_has(plugin, variables), "%s", promise);
}

/* Starts the plugin in the only task of the second of two nodes. */
static void begin_agent(struct fake_plugin *plugin, const char *words, int count,
                        char **command)
{
    side_enter_step();
    fake_step = (struct fake_step){.nodes = 2,
                                   .node = 1,
                                   .tasks = 2,
                                   .local_tasks = 1,
                                   .rank = 1,
                                   .words = count,
                                   .command = command};
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
    side_start(plugin, words);
    plugin->user_init(NULL, 0, NULL);
}

static void test_agent(void)
{
    static char *torchrun[] = {"/usr/bin/torchrun", "train.py"};
    static char *typed[] = {"torchrun", "--standalone", "--nproc_per_node=99999",
                            "train.py"};
    static char *script[] = {"/bin/sh", "run.sh"};
    struct fake_plugin plugin;

    begin_agent(&plugin, "on", 2, torchrun);
    fake_step_setenv("MASTER_ADDR", "10.0.0.1");
    fake_step_setenv("MASTER_PORT", "29500");
    task_has(&plugin,
             "PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 "
             "PET_MASTER_ADDR=10.0.0.1 PET_MASTER_PORT=29500",
             "torchrun, once per node, finds the values of its options");
    task_has(&plugin,
             "-RANK -WORLD_SIZE -LOCAL_RANK -HOROVOD_RANK -HOROVOD_SIZE NODE_RANK=1 "
             "HVD_LAUNCH=1 HVD_GPUS=all CUDA_VISIBLE_DEVICES=0,1 -UCX_NET_DEVICES "
             "-HVD_GPU_INDEX CUDA_DEVICE_ORDER=PCI_BUS_ID +OMP_NUM_THREADS",
             "its ranks do not inherit numbers or a GPU of torchrun");
    fake_step_setenv("PET_NPROC_PER_NODE", "7");
    fake_step_setenv("PET_MASTER_PORT", "4711");
    fake_step_setenv("HVD_NCCL_FILES", "/tmp");
    task_has(&plugin, "NCCL_DEBUG_FILE=/tmp/nccl.-.%h.%p NCCL_DEBUG=WARN",
             "an agent gets a file for NCCL without a rank");
    fake_step_setenv("HVD_NCCL_FILES", "");
    task_has(&plugin, "PET_NPROC_PER_NODE=7 PET_MASTER_PORT=4711 PET_NNODES=2",
             "values that the user set for torchrun are kept");
    side_finish(&plugin);
    begin_agent(&plugin, "tasks=keep", 2, torchrun);
    task_has(&plugin, "-PET_NNODES RANK=1 HOROVOD_RANK=1",
             "with tasks=keep, torchrun is a task as any other");
    side_finish(&plugin);
    begin_agent(&plugin, "on", 2, script);
    task_has(&plugin, "-PET_NNODES RANK=1", "a script is a rank");
    side_finish(&plugin);
    begin_agent(&plugin, "tasks=node", 2, script);
    task_has(&plugin, "PET_NNODES=2 -RANK",
             "with tasks=node, a script starts the ranks of its node");
    side_finish(&plugin);
    begin_agent(&plugin, "on", 4, typed);
    task_has(&plugin, "-PET_NNODES -PET_NODE_RANK -PET_MASTER_ADDR OMP_NUM_THREADS=1",
             "torchrun --standalone does not join other nodes");
    side_finish(&plugin);
}

static const char *wanted_rows;

/* Compares the rows of HVD_AGENT_PLAN; the cpus before them are those of this machine. */
static bool has_wanted_rows(void)
{
    const char *plan = fake_step_getenv("HVD_AGENT_PLAN");
    const char *rows = plan != NULL ? strchr(plan, ';') : NULL;

    fprintf(stderr, "HVD_AGENT_PLAN is %s\n", plan != NULL ? plan : "unset");
    return rows != NULL && strncmp(plan, "12.3 ", 5) == 0 &&
           strcmp(rows, wanted_rows) == 0;
}

static void task_has_rows(struct fake_plugin *plugin, const char *rows,
                          const char *promise)
{
    wanted_rows = rows;
    tap_ok(side_run_task(plugin, has_wanted_rows) == 0, "%s", promise);
}

/* Starts the plugin in torchrun on a node with two sockets, whose GPUs 0 to 3 are on
 * socket 0 and 4 to 7 on socket 1. */
static void begin_planned(struct fake_plugin *plugin, const char *text, int count,
                          char **command)
{
    char topology[512];
    char *words[] = {"pythonpath=/usr", topology};

    snprintf(topology, sizeof(topology), "topology=%s", dgx_path);
    side_enter_step();
    fake_step = (struct fake_step){
        .nodes = 1, .tasks = 1, .local_tasks = 1, .words = count, .command = command};
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "1");
    fake_step_setenv("SLURM_JOB_ID", "12");
    fake_step_setenv("SLURM_STEP_ID", "3");
    fake_step_setenv("SLURM_STEP_GPUS", "0,4");
    fake_step_setenv("CUDA_VISIBLE_DEVICES", "0,4");
    side_start_with(plugin, text, 2, words);
    plugin->user_init(NULL, 0, NULL);
}

static void test_agent_plan(void)
{
    static char *torchrun[] = {"torchrun", "train.py"};
    static char *by_gpu[] = {"torchrun", "--nproc-per-node=gpu", "train.py"};
    static char *one[] = {"torchrun", "--nproc-per-node=1", "train.py"};
    static const char rows[] = ";0-19,40-59 0 mlx5_0:1;20-39,60-79 1 mlx5_2:1";
    struct fake_plugin plugin;

    begin_planned(&plugin, "on", 2, torchrun);
    task_has_rows(&plugin, rows,
                  "each rank of torchrun gets the cores, memory node and network card "
                  "near its GPU");
    task_has(&plugin, "-UCX_NET_DEVICES -HVD_CPUS -HVD_NIC",
             "torchrun itself gets no rank's binding");
    fake_step_setenv("HVD_AGENT_PLAN", "1.1 0;0 - -");
    task_has_rows(&plugin, rows, "the plan of an outer step is replaced");
    side_finish(&plugin);
    begin_planned(&plugin, "on", 3, by_gpu);
    task_has_rows(&plugin, rows, "also with --nproc-per-node=gpu");
    side_finish(&plugin);
    begin_planned(&plugin, "on", 3, one);
    task_has_rows(&plugin, ";0-19,40-59 0 mlx5_0:1",
                  "the number of ranks on torchrun's command line counts");
    side_finish(&plugin);
    begin_planned(&plugin, "bind=none,nic=off", 2, torchrun);
    task_has_rows(&plugin, ";- - -;- - -", "bind=none and nic=off hold for these ranks");
    side_finish(&plugin);
    begin_planned(&plugin, "on", 2, torchrun);
    fake_step_setenv("SLURMD_TRES_BIND", "gpu:single:1");
    task_has(&plugin, "-HVD_AGENT_PLAN PET_NNODES=1",
             "ranks whose GPUs are hidden from each other get no plan");
    side_finish(&plugin);
    begin_planned(&plugin, "tasks=keep", 2, torchrun);
    task_has(&plugin, "-HVD_AGENT_PLAN", "neither does a task that is a rank itself");
    side_finish(&plugin);
    begin_planned(&plugin, "verbose", 2, torchrun);
    task_has(&plugin, "+HVD_AGENT_PLAN", "with verbose, the ranks get the same plan");
    side_finish(&plugin);
}

static cpu_set_t all_cpus;

static bool has_all_cpus(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_EQUAL(&cpus, &all_cpus);
}

/* Binds this process to one CPU, as Slurm binds a task, and runs a task. Returns whether
 * the task can use all CPUs again. */
static bool has_all_cpus_after_binding(struct fake_plugin *plugin)
{
    cpu_set_t one;
    int cpu = 0;
    int status;

    sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
    while (!CPU_ISSET(cpu, &all_cpus)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    status = side_run_task(plugin, has_all_cpus);
    sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
    return status == 0;
}

static void test_agent_cpus(void)
{
    static char *torchrun[] = {"torchrun", "train.py"};
    struct fake_plugin plugin;

    begin_agent(&plugin, "on", 2, torchrun);
    tap_ok(has_all_cpus_after_binding(&plugin),
           "torchrun and its ranks may use all CPUs of the step");
    side_finish(&plugin);
    begin_agent(&plugin, "bind=none", 2, torchrun);
    tap_ok(!has_all_cpus_after_binding(&plugin) || CPU_COUNT(&all_cpus) == 1,
           "with bind=none, they keep the binding that Slurm chose");
    side_finish(&plugin);
}

static void test_agent_without_gpus(void)
{
    static char *torchrun[] = {"torchrun", "train.py"};
    struct fake_plugin plugin;

    fake_reset(S_CTX_REMOTE);
    fake_step = (struct fake_step){.nodes = 2,
                                   .node = 1,
                                   .tasks = 2,
                                   .local_tasks = 1,
                                   .rank = 1,
                                   .words = 2,
                                   .command = torchrun};
    fake_step_setenv("SLURM_HVD_AGENT_RANKS", "5");
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    task_has(&plugin, "PET_NPROC_PER_NODE=2",
             "without GPUs, torchrun starts as many ranks as Slurm would have started");
    fake_step.node = 0;
    task_has(&plugin, "PET_NPROC_PER_NODE=3",
             "if these cannot be divided evenly, the first node gets one more");
    fake_step_setenv("SLURM_HVD_AGENT_RANKS", "");
    task_has(&plugin, "PET_NPROC_PER_NODE=1", "otherwise, torchrun starts one rank");
    fake_step.local_tasks = 2;
    fake_step.tasks = 4;
    fake_step.rank = 0;
    task_has(&plugin, "-PET_NNODES RANK=0", "several torchruns on a node are tasks");
    tap_ok(strstr(fake_messages, "torchrun starts the ranks of its node itself, but "
                                 "Slurm starts it 2 times") != NULL,
           "the first of them tells the user what to change");
    side_finish(&plugin);
}

int main(int count, char **arguments)
{
    side_begin(count > 1 ? arguments[1] : "");
    dgx_path = count > 2 ? arguments[2] : "";
    test_agent();
    test_agent_plan();
    test_agent_cpus();
    test_agent_without_gpus();
    return tap_done();
}
