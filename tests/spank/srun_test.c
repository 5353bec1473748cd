/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a stand-in for srun: what it asks for, leaves alone, undoes, refuses. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/env.h"
#include "tests/spank/fake_spank.h"
#include "tests/tap.h"

static const char *plugin_path;

/* The stand-in keeps its plugins where a real srun keeps its own: beside its functions. */
static char pmix_path[4096];

static void install_pmix(bool is_there)
{
    if (is_there) {
        fclose(fopen(pmix_path, "w"));
    } else {
        unlink(pmix_path);
    }
}

/* A batch script's environment on two nodes with four GPUs and 16 cpus each. */
static void enter_job(void)
{
    clearenv();
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NUM_NODES", "2", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "16(x2)", 1);
    setenv("SLURM_GPUS_ON_NODE", "4", 1);
    fake_reset(S_CTX_LOCAL);
    fake_type_option("nodes", "2");
    fake_step.nodes = 2;
    fake_step.tasks = 8;
}

static void start(struct fake_plugin *plugin, char *word)
{
    fake_load(plugin, plugin_path);
    plugin->init(NULL, word != NULL ? 1 : 0, &word);
}

static int type_hvd(const char *text)
{
    return fake_registered->cb(fake_registered->val, text, 0);
}

static bool has_option(const char *name, const char *value)
{
    const char *found = fake_option(name);

    return value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0;
}

static bool has_variable(const char *name, const char *value)
{
    const char *found = getenv(name);

    return value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0;
}

/* The exit status of srun if it ended in init_post_opt; -1 when it went on. */
static int status_of_check(struct fake_plugin *plugin)
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        plugin->init_post_opt(NULL, 0, NULL);
        _exit(99);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 99 ? WEXITSTATUS(status) : -1;
}

extern char **environ;

static int environment_size(void)
{
    int count = 0;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    return count;
}

static void test_without_option(void)
{
    struct fake_plugin plugin;
    int before;

    enter_job();
    before = environment_size();
    start(&plugin, NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    plugin.local_user_init(NULL, 0, NULL);
    plugin.exit(NULL, 0, NULL);
    tap_ok(environment_size() == before && fake_option_count() == 1 &&
               fake_messages[0] == '\0',
           "without --hvd srun sees no change");
    fake_unload(&plugin);
}

static void test_offers(void)
{
    struct fake_plugin plugin;

    enter_job();
    setenv("SLURM_CPUS_PER_TASK", "3", 1);
    start(&plugin, NULL);
    tap_ok(type_hvd(NULL) == 0, "--hvd is taken");
    tap_ok(has_option("mpi", "pmix"), "PMIx is switched on");
    tap_ok(has_option("gpu-bind", "none"), "all GPUs are left in each task");
    tap_ok(has_option("kill-on-bad-exit", "1"), "a failed rank ends the step");
    tap_ok(has_option("cpus-per-task", "3"), "the job's cpus per task reach srun");
    tap_ok(has_variable("SLURM_PMIX_TIMEOUT", "60") &&
               has_variable("SLURM_PMIX_FENCE", "ring") &&
               has_variable(HVD_ENV_REQUEST, "1"),
           "PMIx's time limit is set, and the request marked");
    tap_ok(has_option("ntasks-per-node", NULL), "tasks wait until all options are known");
    tap_ok(type_hvd("off") == 0 && fake_option_count() == 1 &&
               has_variable("SLURM_PMIX_TIMEOUT", NULL) &&
               has_variable(HVD_ENV_REQUEST, NULL),
           "--hvd=off takes all of it back");
    fake_unload(&plugin);
}

/* What srun asks Slurm for: tasks per node and in all, NULL where it asks for nothing. */
static bool asks(const char *per_node, const char *tasks)
{
    struct fake_plugin plugin;
    bool is_right;

    start(&plugin, NULL);
    type_hvd(NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    is_right = has_option("ntasks-per-node", per_node) && has_option("ntasks", tasks);
    fake_unload(&plugin);
    return is_right;
}

static void test_tasks(void)
{
    enter_job();
    tap_ok(asks("4", "8"), "in a job: one task per GPU on each node");
    enter_job();
    fake_type_option("nodes", "1");
    tap_ok(asks("4", "4"), "on one node of it");
    enter_job();
    fake_type_option("gres", "gres:gpu:2");
    tap_ok(asks("2", "4"), "for fewer GPUs than the job has");
    enter_job();
    fake_type_option("gres", "none");
    tap_ok(asks(NULL, NULL), "for no GPUs: nothing is asked");
    enter_job();
    fake_type_option("ntasks", "3");
    tap_ok(asks(NULL, "3"), "the user's own number stays");
    clearenv();
    fake_reset(S_CTX_LOCAL);
    fake_type_option("nodes", "3");
    fake_type_option("gpus-per-node", "a100:2");
    tap_ok(asks("2", "6"), "outside of a job: one task per GPU typed");
    clearenv();
    fake_reset(S_CTX_LOCAL);
    tap_ok(asks(NULL, NULL), "without GPUs nothing is asked");
}

static void test_user_wins(void)
{
    struct fake_plugin plugin;

    enter_job();
    fake_type_option("mpi", "pmix_v4");
    fake_type_option("kill-on-bad-exit", "0");
    fake_type_option("gpu-bind", "single:1");
    fake_type_option("ntasks", "2");
    setenv("SLURM_PMIX_TIMEOUT", "5", 1);
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(has_option("mpi", "pmix_v4") && has_option("kill-on-bad-exit", "0") &&
               has_option("gpu-bind", "single:1") &&
               has_option("ntasks-per-node", NULL) &&
               has_variable("SLURM_PMIX_TIMEOUT", "5"),
           "what the user typed before stays");
    type_hvd("off");
    tap_ok(has_option("mpi", "pmix_v4") && has_option("ntasks", "2") &&
               has_variable("SLURM_PMIX_TIMEOUT", "5"),
           "--hvd=off leaves the user's options alone");
    fake_unload(&plugin);

    enter_job();
    start(&plugin, NULL);
    type_hvd(NULL);
    fake_type_option("mpi", "pmi2");
    type_hvd("off");
    tap_ok(has_option("mpi", "pmi2"), "what the user typed since stays");
    fake_unload(&plugin);
}

static void test_keys(void)
{
    struct fake_plugin plugin;

    enter_job();
    start(&plugin, NULL);
    type_hvd("tasks=keep");
    plugin.init_post_opt(NULL, 0, NULL);
    tap_ok(has_option("ntasks-per-node", NULL) && has_option("mpi", "pmix"),
           "tasks=keep leaves the number of tasks alone");
    type_hvd("gpus=keep");
    plugin.init_post_opt(NULL, 0, NULL);
    tap_ok(has_option("gpu-bind", NULL) && has_option("ntasks-per-node", "4"),
           "a second --hvd replaces the first; gpus=keep leaves --gpu-bind alone");
    fake_unload(&plugin);
    enter_job();
    start(&plugin, "mpi=keep");
    type_hvd(NULL);
    tap_ok(has_option("mpi", NULL), "the admin's mpi=keep leaves --mpi alone");
    fake_unload(&plugin);
    enter_job();
    start(&plugin, "default=on");
    tap_ok(has_variable(HVD_ENV_SLURM_OPTION, "on"),
           "the admin's default=on reaches srun as an inherited --hvd");
    fake_unload(&plugin);
}

static void test_texts(void)
{
    struct fake_plugin plugin;

    enter_job();
    start(&plugin, NULL);
    tap_ok(type_hvd("bind=sockets") < 0 &&
               strstr(fake_messages, "bind=socket|cores|none"),
           "a wrong word is refused with the right ones");
    fake_unload(&plugin);
    fake_reset(S_CTX_ALLOCATOR);
    start(&plugin, NULL);
    tap_ok(type_hvd("wrong") < 0 && type_hvd("verbose") == 0 && fake_option_count() == 0,
           "sbatch and salloc check the text and change nothing");
    fake_unload(&plugin);
}

static void test_refusals(void)
{
    struct fake_plugin plugin;

    enter_job();
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(status_of_check(&plugin) == -1, "a job that fits goes on");
    fake_type_option("mpi", "none");
    tap_ok(status_of_check(&plugin) == 1, "--mpi=none ends srun before the step");
    fake_unload(&plugin);

    enter_job();
    setenv("SLURM_JOB_CPUS_PER_NODE", "16,2", 1);
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(status_of_check(&plugin) == 1, "too few cpus on one node end srun");
    fake_type_option("ntasks", "2");
    tap_ok(status_of_check(&plugin) == -1, "not if the user says how many tasks");
    fake_unload(&plugin);

    enter_job();
    setenv("SLURM_GPUS", "6", 1);
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(status_of_check(&plugin) == 1, "nodes that differ in GPUs end srun");
    fake_unload(&plugin);

    enter_job();
    start(&plugin, NULL);
    type_hvd(NULL);
    fake_type_option("ntasks", "9");
    tap_ok(status_of_check(&plugin) == 1, "more tasks than GPUs end srun");
    fake_unload(&plugin);
}

static int launch(struct fake_plugin *plugin, const char *mpi, unsigned tasks)
{
    enter_job();
    start(plugin, NULL);
    type_hvd(NULL);
    plugin->init_post_opt(NULL, 0, NULL);
    setenv("SLURM_MPI_TYPE", mpi, 1);
    fake_step.tasks = tasks;
    return plugin->local_user_init(NULL, 0, NULL);
}

static void test_launch(void)
{
    struct fake_plugin plugin;

    tap_ok(launch(&plugin, "pmix", 8) == 0 && has_variable(HVD_ENV_LAUNCH_ERROR, NULL),
           "a step with PMIx starts");
    fake_unload(&plugin);
    tap_ok(launch(&plugin, "none", 8) < 0 && strstr(fake_messages, "--mpi=pmix") &&
               strstr(getenv(HVD_ENV_LAUNCH_ERROR), "PMIx"),
           "a step without PMIx is refused, and its tasks are told");
    fake_unload(&plugin);
    enter_job();
    fake_type_option("ntasks", "1");
    start(&plugin, NULL);
    type_hvd(NULL);
    fake_step.tasks = 1;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0, "a lone task needs no PMIx");
    fake_unload(&plugin);
    tap_ok(launch(&plugin, "pmix", 9) < 0 && strstr(fake_messages, "--ntasks-per-node=4"),
           "a step with more tasks than GPUs is refused");
    fake_unload(&plugin);
    tap_ok(launch(&plugin, "pmix", 2) < 0 && strstr(fake_messages, "--ntasks-per-node=4"),
           "a step for which Slurm did not take the number is refused");
    fake_unload(&plugin);
    enter_job();
    fake_type_option("gres", "none");
    start(&plugin, NULL);
    type_hvd(NULL);
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    fake_step.tasks = 64;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0,
           "a step that wants no GPUs may have any number of tasks");
    fake_unload(&plugin);
}

static void test_nested(void)
{
    struct fake_plugin plugin;

    enter_job();
    setenv(HVD_ENV_LAUNCH, "1", 1);
    setenv(HVD_ENV_RANK, "3", 1);
    setenv(HVD_ENV_NIC, "mlx5_0:1", 1);
    setenv(HVD_ENV_UCX_NET_DEVICES, "mlx5_0:1", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_CPU_BIND", "quiet,mask_cpu:0x1", 1);
    fake_type_option("cpu-bind", "quiet,mask_cpu:0x1");
    setenv("SLURM_MPI_TYPE", "none", 1);
    fake_type_option("mpi", "none");
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(has_variable(HVD_ENV_RANK, NULL) && has_variable(HVD_ENV_LAUNCH, NULL) &&
               has_variable(HVD_ENV_UCX_NET_DEVICES, NULL),
           "an srun inside a rank forgets that rank's variables");
    tap_ok(has_option("cpu-bind", NULL) && has_variable("SLURM_CPU_BIND", NULL),
           "and the mask that slurmstepd gave to that rank");
    tap_ok(has_option("mpi", "pmix"), "and what MPI Slurm chose for it");
    fake_unload(&plugin);

    enter_job();
    setenv(HVD_ENV_RANK, "3", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_CPU_BIND", "quiet,mask_cpu:0x1", 1);
    setenv("SLURM_MPI_TYPE", "none", 1);
    fake_type_option("cpu-bind", "cores");
    fake_type_option("mpi", "pmi2");
    start(&plugin, NULL);
    type_hvd(NULL);
    tap_ok(has_variable(HVD_ENV_RANK, "3") && has_option("cpu-bind", "cores") &&
               has_option("mpi", "pmi2"),
           "what the user set inside a step stays");
    fake_unload(&plugin);
}

static void test_slurm_without_pmix(void)
{
    struct fake_plugin plugin;

    install_pmix(false);
    tap_ok(launch(&plugin, "none", 8) < 0 && has_option("mpi", NULL) &&
               strstr(fake_messages, "without its plugin mpi_pmix"),
           "a Slurm without PMIx is not asked for it, and the user is told");
    install_pmix(true);
    fake_unload(&plugin);
}

static void test_hint(void)
{
    struct fake_plugin plugin;

    enter_job();
    start(&plugin, NULL);
    type_hvd(NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    plugin.exit(NULL, 0, NULL);
    tap_ok(strstr(fake_messages, "4 tasks per node") != NULL,
           "a step that Slurm refuses gets a hint at what hvd asked for");
    fake_unload(&plugin);
}

int main(int count, char **arguments)
{
    plugin_path = count > 1 ? arguments[1] : "";
    snprintf(pmix_path, sizeof(pmix_path), "%.*s/mpi_pmix.so",
             (int)(strrchr(arguments[0], '/') - arguments[0]), arguments[0]);
    install_pmix(true);
    test_without_option();
    test_offers();
    test_tasks();
    test_user_wins();
    test_keys();
    test_texts();
    test_refusals();
    test_launch();
    test_nested();
    test_slurm_without_pmix();
    test_hint();
    install_pmix(false);
    return tap_done();
}
