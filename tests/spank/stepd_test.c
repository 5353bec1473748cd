/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside a stand-in for slurmstepd and its tasks: what it exports,
 * leaves alone and refuses. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/stepd_side.h"
#include "tests/tap.h"

static const char *dgx_path; /* a node with eight GPUs and a network card per pair */

static void task_has(struct fake_plugin *plugin, const char *variables,
                     const char *promise)
{
    tap_ok(side_task_has(plugin, variables), "%s", promise);
}

/* Starts the plugin for a step, up to the point where side_run_task can run a task. */
static void begin(struct fake_plugin *plugin, const char *words)
{
    side_enter_step();
    side_start(plugin, words);
    plugin->user_init(NULL, 0, NULL);
}

static bool is_untouched(void)
{
    return fake_step_env_count() == 4 && fake_messages[0] == '\0';
}

static void test_contract(void)
{
    struct fake_plugin plugin;

    side_enter_step();
    side_start(&plugin, "on");
    tap_ok(fake_step_env_count() == 4,
           "as root, the plugin changes no variable of the step");
    plugin.user_init(NULL, 0, NULL);
    tap_ok(fake_step_env_count() == 4,
           "before the tasks exist, the plugin changes no variable of the step");
    task_has(&plugin,
             "HOROVOD_RANK=3 HOROVOD_SIZE=4 HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=2 "
             "HOROVOD_CROSS_RANK=1 HOROVOD_CROSS_SIZE=2 HVD_LAUNCH=1 HVD_GPUS=all "
             "+HVD_LAUNCH_VERSION "
             "CUDA_VISIBLE_DEVICES=0,1 PYTHONPATH=/usr +HVD_CPUS HVD_GPU_INDEX=1 "
             "CUDA_DEVICE_ORDER=PCI_BUS_ID",
             "a task gets all variables of a rank");
    fake_step_setenv(HVD_ENV_RANK, "17");
    fake_step_setenv("UCX_NET_DEVICES", "mlx5_9:1");
    fake_step_setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST");
    fake_step_setenv("PYTHONPATH", "/mine");
    task_has(&plugin,
             "HOROVOD_RANK=17 UCX_NET_DEVICES=mlx5_9:1 CUDA_DEVICE_ORDER=FASTEST_FIRST "
             "PYTHONPATH=/mine:/usr",
             "variables that the user set are kept");
    side_finish(&plugin);
}

static bool has_place(void)
{
    const char *port = fake_step_getenv("MASTER_PORT");

    return side_is("MASTER_ADDR", "127.0.0.1") && port != NULL && atoi(port) > 0 &&
           side_is("RANK", "0") && side_is("WORLD_SIZE", "1");
}

static bool has_jax_place(void)
{
    const char *port = fake_step_getenv("MASTER_PORT");
    const char *jax_port = fake_step_getenv("JAX_COORDINATOR_PORT");
    char address[64] = "";

    if (port == NULL || jax_port == NULL || strcmp(port, jax_port) == 0) {
        return false;
    }
    snprintf(address, sizeof(address), "127.0.0.1:%s", jax_port);
    return side_is("JAX_COORDINATOR_ADDRESS", address);
}

static bool has_one_port(void)
{
    return side_is("MASTER_PORT", "61234") && side_is("JAX_COORDINATOR_PORT", "61234");
}

static void test_place(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    task_has(&plugin, "-MASTER_ADDR -MASTER_PORT RANK=3",
             "without a service, tasks start without MASTER_ADDR and MASTER_PORT");
    fake_step = (struct fake_step){.nodes = 1, .tasks = 1, .local_tasks = 1};
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "1");
    tap_ok(side_run_task(&plugin, has_place) == 0,
           "a single task gets MASTER_ADDR and MASTER_PORT without a service");
    tap_ok(side_run_task(&plugin, has_jax_place) == 0,
           "JAX gets the same address and a port of its own");
    fake_step_setenv("HVD_PORT_RANGE", "61234-61234");
    tap_ok(side_run_task(&plugin, has_one_port) == 0,
           "in a range of ports that the user gives, JAX's port needs no further one");
    fake_step_setenv("HVD_PORT_RANGE", "");
    fake_step_setenv("JAX_COORDINATOR_PORT", "7");
    task_has(&plugin, "JAX_COORDINATOR_ADDRESS=127.0.0.1:7 JAX_COORDINATOR_PORT=7",
             "a port that the user set for JAX is kept");
    fake_step_setenv("JAX_COORDINATOR_ADDRESS", "there:8");
    task_has(&plugin, "JAX_COORDINATOR_ADDRESS=there:8 +MASTER_PORT",
             "an address that the user set for JAX is kept");
    side_finish(&plugin);
}

static void test_torch(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    fake_step_setenv("SLURM_SRUN_COMM_HOST", "127.0.0.1");
    task_has(&plugin,
             "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 "
             "NODE_RANK=1 -GLOO_SOCKET_IFNAME -NCCL_SOCKET_IFNAME "
             "HVD_DEFAULTS=OMP_NUM_THREADS,MKL_NUM_THREADS,SLURM_NTASKS_PER_NODE",
             "scripts of torch.distributed find their numbers");
    fake_step_setenv("HVD_IFACE", "ib0,ib1");
    task_has(&plugin, "GLOO_SOCKET_IFNAME=ib0,ib1 NCCL_SOCKET_IFNAME==ib0,ib1",
             "NCCL and Gloo use the interface of HVD_IFACE");
    fake_step_setenv("RANK", "7");
    fake_step_setenv("OMP_NUM_THREADS", "3");
    fake_step_setenv("NCCL_SOCKET_IFNAME", "eth");
    task_has(&plugin,
             "RANK=7 WORLD_SIZE=4 OMP_NUM_THREADS=3 -MKL_NUM_THREADS "
             "GLOO_SOCKET_IFNAME=ib0,ib1 NCCL_SOCKET_IFNAME=eth "
             "HVD_DEFAULTS=SLURM_NTASKS_PER_NODE,GLOO_SOCKET_IFNAME",
             "values that the user set for torch, OpenMP and NCCL are kept");
    fake_step.nodes = 1;
    fake_step.node = 0;
    fake_step.tasks = 2;
    fake_step.rank = 1;
    task_has(&plugin, "-GLOO_SOCKET_IFNAME WORLD_SIZE=2",
             "on one node, NCCL and Gloo choose the interface");
    side_finish(&plugin);
}

static void test_service(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    task_has(&plugin, "-HVD_RENDEZVOUS",
             "if srun has started no service, ranks get no address");
    fake_step_setenv(HVD_ENV_RENDEZVOUS_STEP, "4711:key");
    fake_step_setenv("SLURM_SRUN_COMM_HOST", "login");
    fake_step_setenv("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1");
    task_has(&plugin, "HVD_RENDEZVOUS=login,10.0.0.1:4711:key -HOROVOD_ELASTIC",
             "ranks get the address of srun's service, with both addresses of its host");
    fake_step_setenv("SLURM_SRUN_COMM_HOST", "10.0.0.1");
    task_has(&plugin, "HVD_RENDEZVOUS=10.0.0.1:4711:key",
             "if both addresses are the same, ranks get it once");
    side_finish(&plugin);
    begin(&plugin, "elastic,meet=/tmp/meet");
    fake_step_setenv(HVD_ENV_RENDEZVOUS_STEP, "n7:4711:key");
    task_has(
        &plugin, "HVD_RENDEZVOUS=n7:4711:key HOROVOD_ELASTIC=1",
        "ranks of an elastic job get the address of the service that srun has joined");
    side_finish(&plugin);
}

static void test_files(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "timeline=/tmp/T.json,timeline-ranks=all,report=late.txt,metrics=m");
    task_has(&plugin,
             "HVD_REPORT=late.txt HOROVOD_TIMELINE=/tmp/T.json HVD_TIMELINE_RANKS=all "
             "HVD_METRICS=m",
             "ranks get the files that --hvd names");
    fake_step_setenv(HVD_ENV_METRICS, "mine");
    fake_step_setenv(HVD_ENV_REPORT, "mine");
    fake_step_setenv(HVD_ENV_TIMELINE, "DYNAMIC");
    task_has(&plugin,
             "HVD_REPORT=late.txt HOROVOD_TIMELINE=/tmp/T.json HVD_TIMELINE_RANKS=all "
             "HVD_METRICS=m",
             "files that --hvd names replace those of the environment");
    side_finish(&plugin);
    begin(&plugin, "on");
    fake_step_setenv(HVD_ENV_REPORT, "mine");
    fake_step_setenv(HVD_ENV_TIMELINE, "DYNAMIC");
    task_has(&plugin, "HVD_REPORT=mine HOROVOD_TIMELINE=DYNAMIC -HVD_TIMELINE_RANKS",
             "if --hvd names no files, those of the environment are kept");
    side_finish(&plugin);
}

static void test_nccl(void)
{
    char work[] = "/tmp/stepd_nccl.XXXXXX";
    struct fake_plugin plugin;
    char text[128];

    if (mkdtemp(work) == NULL) {
        exit(1);
    }
    snprintf(text, sizeof(text), "nccl=%s/of-job", work);
    begin(&plugin, text);
    snprintf(text, sizeof(text),
             "HVD_NCCL_FILES=%s/of-job NCCL_DEBUG_FILE=%s/of-job/nccl.3.%%h.%%p "
             "NCCL_DEBUG=WARN NCCL_RAS_ENABLE=1",
             work, work);
    task_has(&plugin, text,
             "--hvd=nccl=DIR lets NCCL write to a file of the rank in DIR");
    fake_step_setenv("NCCL_DEBUG_FILE", "mine");
    fake_step_setenv("NCCL_DEBUG", "INFO");
    task_has(&plugin, "NCCL_DEBUG_FILE=mine NCCL_DEBUG=INFO NCCL_RAS_ENABLE=1",
             "values that the user set for NCCL are kept");
    side_finish(&plugin);
    begin(&plugin, "on");
    task_has(&plugin, "-HVD_NCCL_FILES -NCCL_DEBUG_FILE -NCCL_DEBUG -NCCL_RAS_ENABLE",
             "without nccl=DIR, NCCL's variables are left alone");
    snprintf(text, sizeof(text), "%s/of-user", work);
    fake_step_setenv("HVD_NCCL_FILES", text);
    snprintf(text, sizeof(text), "NCCL_DEBUG_FILE=%s/of-user/nccl.3.%%h.%%p", work);
    task_has(&plugin, text, "HVD_NCCL_FILES of the user is like nccl=DIR");
    side_finish(&plugin);
    begin(&plugin, "nccl=/dev/null/of-job");
    tap_ok(side_run_task(&plugin, is_untouched) == EXIT_FAILURE,
           "a task whose folder for NCCL cannot be made does not start");
    side_finish(&plugin);
    for (const char *const *name = (const char *const[]){"/of-job", "/of-user", "", NULL};
         *name != NULL; name++) {
        snprintf(text, sizeof(text), "%s%s", work, *name);
        (void)rmdir(text);
    }
}

static void test_requeue(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "requeue");
    fake_step_setenv(HVD_ENV_SLURM_JOB, "12");
    fake_step_setenv(HVD_ENV_SLURM_STEP, "3");
    task_has(&plugin, "HVD_REQUEUE=12.3",
             "--hvd=requeue makes the ranks of this step requeue the job");
    side_finish(&plugin);
    begin(&plugin, "on");
    task_has(&plugin, "-HVD_REQUEUE", "without it they do not");
    side_finish(&plugin);
}

static const char *recorded; /* the names that is_recorded expects, each as ",NAME:" */

/* True if HVD_EXPORTED has an entry for each variable of `recorded`, and none for the
 * others. */
static bool is_recorded(void)
{
    static const char *const names[] = {
        ",HVD_GPU_LIST:", ",HVD_GPUS:", ",PYTHONPATH:", ",RANK:", ",HVD_DEFAULTS:"};
    char text[4200];
    bool good = true;

    snprintf(text, sizeof(text), ",%s", fake_step_getenv(HVD_ENV_EXPORTED));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool is_wanted = strstr(recorded, names[i]) != NULL;

        good = (strstr(text, names[i]) != NULL) == is_wanted && good;
    }
    return good;
}

static void test_record(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    recorded = ",HVD_GPU_LIST: ,HVD_GPUS: ,PYTHONPATH: ,RANK:";
    tap_ok(side_run_task(&plugin, is_recorded) == 0,
           "the plugin records the variables that it has set");
    fake_step_setenv("RANK", "7");
    fake_step_setenv("SLURMD_TRES_BIND", "gpu:single:1");
    recorded = ",HVD_GPUS: ,PYTHONPATH:";
    tap_ok(side_run_task(&plugin, is_recorded) == 0,
           "it does not record those of the user, and those that it removes again");
    side_finish(&plugin);
}

static void test_gpus(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    fake_step_setenv("CUDA_VISIBLE_DEVICES", "0");
    fake_step_setenv("SLURMD_TRES_BIND", "gpu:none");
    task_has(&plugin, "CUDA_VISIBLE_DEVICES=0,1 HVD_GPUS=all",
             "GPUs that Slurm hid from the task are visible again");
    fake_step_setenv("SLURMD_TRES_BIND", "gpu:single:1");
    task_has(&plugin, "CUDA_VISIBLE_DEVICES=0 HVD_GPUS=isolated",
             "GPUs that the user wanted hidden stay hidden");
    side_finish(&plugin);

    begin(&plugin, "gpus=keep");
    fake_step_setenv("CUDA_VISIBLE_DEVICES", "1");
    task_has(&plugin, "CUDA_VISIBLE_DEVICES=1 HVD_LAUNCH=1",
             "gpus=keep keeps Slurm's choice of GPUs");
    side_finish(&plugin);
}

static void test_cards(void)
{
    char topology[4096 + 16];
    char *words[] = {"pythonpath=", topology};
    struct fake_plugin plugin;

    snprintf(topology, sizeof(topology), "topology=%s", dgx_path);
    side_enter_step();
    side_start_with(&plugin, "bind=none", 2, words);
    plugin.user_init(NULL, 0, NULL);
    task_has(&plugin, "HVD_NIC=mlx5_0:1 UCX_NET_DEVICES=mlx5_0:1",
             "UCX uses the card near the rank's GPU");
    fake_step_setenv("UCX_NET_DEVICES", "mlx5_9:1");
    task_has(&plugin, "HVD_NIC=mlx5_0:1 UCX_NET_DEVICES=mlx5_9:1",
             "a network card that the user chose is kept");
    side_finish(&plugin);
    side_enter_step();
    side_start_with(&plugin, "bind=none,nic=off", 2, words);
    plugin.user_init(NULL, 0, NULL);
    task_has(&plugin, "HVD_NIC= -UCX_NET_DEVICES", "nic=off chooses no network card");
    side_finish(&plugin);
}

/* Runs a task and reads what it writes to standard error. */
static void read_complaints(struct fake_plugin *plugin, char *text, size_t bytes)
{
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);

    dup2(fileno(file), STDERR_FILENO);
    side_run_task(plugin, is_untouched);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void test_unreadable_service(void)
{
    struct fake_plugin plugin;
    char service[700];
    char text[2048];

    memset(service, 'x', sizeof(service) - 1);
    service[sizeof(service) - 1] = '\0';
    begin(&plugin, "on");
    fake_step_setenv(HVD_ENV_RENDEZVOUS, service);
    read_complaints(&plugin, text, sizeof(text));
    tap_ok(strstr(text, "stay unset: HVD_RENDEZVOUS is longer than 639 bytes") != NULL,
           "a rank reports an address of the service that is too long");
    fake_step_setenv(HVD_ENV_RENDEZVOUS, "localhost:1:key");
    fake_break_getenv(HVD_ENV_RENDEZVOUS, ESPANK_NOT_TASK);
    read_complaints(&plugin, text, sizeof(text));
    tap_ok(strstr(text, "stay unset: Slurm cannot read HVD_RENDEZVOUS of this task: "
                        "Not in task context") != NULL,
           "if Slurm cannot read the address, a rank reports Slurm's reason");
    side_finish(&plugin);
}

static void test_table(void)
{
    struct fake_plugin plugin;
    char text[8192];

    side_enter_step();
    fake_step.local_rank = 0;
    side_start(&plugin, "verbose");
    plugin.user_init(NULL, 0, NULL);
    read_complaints(&plugin, text, sizeof(text));
    tap_ok(strstr(text, ": 2 ranks, ") != NULL &&
               strstr(text, "local rank gpu pci") == NULL,
           "the first rank of a node prints the node's line");
    fake_step.node = 0;
    read_complaints(&plugin, text, sizeof(text));
    tap_ok(strstr(text, "local rank gpu pci") != NULL,
           "the first rank of the first node prints the table, too");
    task_has(&plugin, "HOROVOD_LOG_LEVEL=info",
             "verbose makes the first rank of a node log how ranks communicate");
    fake_step.local_rank = 1;
    read_complaints(&plugin, text, sizeof(text));
    tap_ok(strstr(text, ": 2 ranks, ") == NULL,
           "other ranks do not print the node's line");
    task_has(&plugin, "-HOROVOD_LOG_LEVEL",
             "other ranks do not log how ranks communicate");
    fake_step.local_rank = 0;
    fake_step_setenv(HVD_ENV_LOG_LEVEL, "error");
    task_has(&plugin, "HOROVOD_LOG_LEVEL=error", "a log level that the user set is kept");
    side_finish(&plugin);
}

static void test_open_tasks(void)
{
    struct fake_plugin plugin;

    side_enter_step();
    fake_step.node = 0;
    fake_step.local_tasks = 1;
    fake_step.local_rank = 0;
    fake_step_setenv(HVD_ENV_REQUEST, HVD_REQUEST_TASKS_OPEN);
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    tap_ok(fake_messages[0] == '\0', "no topology is read while a user id is root's");
    side_run_task(&plugin, is_untouched);
    tap_ok(strstr(fake_messages, "1 task for 2 GPUs") != NULL &&
               strstr(fake_messages, "--ntasks-per-node=2") != NULL,
           "GPUs that stay idle because srun did not know of them are reported");
    side_finish(&plugin);
    side_enter_step();
    fake_step.node = 0;
    fake_step.local_tasks = 1;
    fake_step.local_rank = 0;
    fake_step_setenv(HVD_ENV_REQUEST, HVD_REQUEST_TASKS_KNOWN);
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    side_run_task(&plugin, is_untouched);
    tap_ok(fake_messages[0] == '\0', "GPUs that the user leaves idle are not reported");
    side_finish(&plugin);
}

static void test_layouts(void)
{
    struct fake_plugin plugin;

    begin(&plugin, "on");
    task_has(&plugin, "SLURM_NTASKS_PER_NODE=2",
             "Lightning finds the number of tasks per node");
    fake_step_setenv("SLURM_NTASKS_PER_NODE", "7");
    task_has(&plugin, "SLURM_NTASKS_PER_NODE=7",
             "a number of tasks per node that Slurm set is kept");
    side_finish(&plugin);
    side_enter_step();
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "3,1");
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    task_has(&plugin, "-SLURM_NTASKS_PER_NODE",
             "with different numbers of tasks on the nodes, it stays unset");
    task_has(&plugin, "-HOROVOD_CROSS_RANK -HOROVOD_CROSS_SIZE HOROVOD_LOCAL_SIZE=2",
             "cross ranks stay unset if the counts do not match");
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2)");
    fake_step_setenv("SLURM_DISTRIBUTION", "arbitrary");
    task_has(&plugin, "-HOROVOD_CROSS_RANK -HOROVOD_CROSS_SIZE HOROVOD_LOCAL_SIZE=2",
             "cross ranks stay unset with --distribution=arbitrary");
    side_finish(&plugin);
}

static bool has_front_end_alone(void)
{
    return side_is("PYTHONPATH", "/usr") && fake_step_env_count() == 5 &&
           fake_messages[0] == '\0';
}

static void test_shells(void)
{
    static const struct {
        uint32_t step;
        const char *text;
        bool (*check)(void);
    } cases[] = {
        {SLURM_BATCH_SCRIPT, "on", has_front_end_alone},
        {SLURM_INTERACTIVE_STEP, "on", has_front_end_alone},
        {SLURM_BATCH_SCRIPT, "off", is_untouched},
        {SLURM_BATCH_SCRIPT, "rubbish", is_untouched},
        {SLURM_EXTERN_CONT, "on", is_untouched},
        {SLURM_EXTERN_CONT, "rubbish", is_untouched},
    };
    struct fake_plugin plugin;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        side_enter_step();
        fake_step.step_id = cases[i].step;
        side_start(&plugin, cases[i].text);
        plugin.user_init(NULL, 0, NULL);
        tap_ok(side_run_task(&plugin, cases[i].check) == 0, "step 0x%x, --hvd=%s: %s",
               cases[i].step, cases[i].text,
               cases[i].check == is_untouched ? "nothing is touched"
                                              : "Python finds the front end");
        side_finish(&plugin);
    }
}

static void test_off(void)
{
    struct fake_plugin plugin;

    begin(&plugin, NULL);
    tap_ok(side_run_task(&plugin, is_untouched) == 0,
           "without --hvd, a task is unchanged");
    side_finish(&plugin);
    begin(&plugin, "off");
    tap_ok(side_run_task(&plugin, is_untouched) == 0,
           "with --hvd=off, a task is unchanged");
    side_finish(&plugin);
}

static void test_refusals(void)
{
    struct fake_plugin plugin;

    side_enter_step();
    side_start(&plugin, "%n%s\033[31m");
    tap_ok(fake_messages[0] == '\0', "as root, a hostile text is not logged");
    plugin.user_init(NULL, 0, NULL);
    tap_ok(strstr(fake_messages, "code 0x25") != NULL &&
               strchr(fake_messages, '\033') == NULL,
           "the user is told what is wrong with a hostile text, in printable characters");
    tap_ok(side_run_task(&plugin, is_untouched) == 1,
           "with an invalid text, the tasks do not start");
    side_finish(&plugin);

    side_enter_step();
    fake_step.local_tasks = 3;
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    tap_ok(side_run_task(&plugin, is_untouched) == 1 && fake_messages[0] == '\0',
           "with more tasks than GPUs, the tasks do not start");
    fake_step.local_rank = 0;
    tap_ok(
        side_run_task(&plugin, is_untouched) == 1 &&
            strstr(fake_messages, "3 tasks but 2 GPUs: use --ntasks-per-node=2") != NULL,
        "with more tasks than GPUs, the first task of the node says which option to use");
    side_finish(&plugin);

    side_enter_step();
    fake_step_setenv(HVD_ENV_LAUNCH_ERROR, "srun said why");
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    tap_ok(side_run_task(&plugin, is_untouched) == 1 && fake_messages[0] == '\0',
           "a step that srun refused does not start, and the reason is not repeated");
    side_finish(&plugin);
}

static void test_cpu_only(void)
{
    struct fake_plugin plugin;

    side_enter_step();
    fake_reset(S_CTX_REMOTE);
    fake_step = (struct fake_step){
        .nodes = 1, .tasks = 64, .local_tasks = 64, .rank = 63, .local_rank = 63};
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    task_has(&plugin, "HVD_LAUNCH=1 -HVD_GPUS",
             "without GPUs, any number of tasks starts");
    fake_step_setenv("CUDA_VISIBLE_DEVICES", "3,1");
    task_has(&plugin, "CUDA_VISIBLE_DEVICES=3,1 -HVD_GPUS",
             "without GPUs of Slurm, the user's CUDA_VISIBLE_DEVICES is kept");
    side_finish(&plugin);
}

int main(int count, char **arguments)
{
    side_begin(count > 1 ? arguments[1] : "");
    dgx_path = count > 2 ? arguments[2] : "";
    test_contract();
    test_torch();
    test_place();
    test_service();
    test_files();
    test_nccl();
    test_requeue();
    test_record();
    test_gpus();
    test_cards();
    test_unreadable_service();
    test_table();
    test_open_tasks();
    test_layouts();
    test_off();
    test_shells();
    test_refusals();
    test_cpu_only();
    return tap_done();
}
