/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside a stand-in for srun: which options it sets, leaves alone,
 * resets and refuses. */
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/srun_side.h"
#include "tests/tap.h"

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

    side_enter_job();
    before = environment_size();
    side_start(&plugin, NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    plugin.local_user_init(NULL, 0, NULL);
    plugin.exit(NULL, 0, NULL);
    tap_ok(environment_size() == before && fake_option_count() == 1 &&
               fake_messages[0] == '\0',
           "without --hvd, srun is unchanged");
    fake_unload(&plugin);
}

static void test_offers(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    setenv("SLURM_CPUS_PER_TASK", "3", 1);
    side_start(&plugin, NULL);
    tap_ok(side_type_hvd(NULL) == 0, "--hvd is accepted");
    tap_ok(side_has_option("mpi", "pmix"), "PMIx is switched on");
    tap_ok(side_has_option("gpu-bind", "none"), "all GPUs are left in each task");
    tap_ok(side_has_option("kill-on-bad-exit", "1"), "a failed rank ends the step");
    tap_ok(side_has_option("cpus-per-task", "3"), "the job's cpus per task reach srun");
    tap_ok(side_has_variable("SLURM_PMIX_TIMEOUT", "60") &&
               side_has_variable("SLURM_PMIX_FENCE", "ring") &&
               side_has_variable(HVD_ENV_REQUEST, "1"),
           "PMIx's time limit is set, and the tasks are told of --hvd");
    tap_ok(side_has_option("ntasks-per-node", NULL),
           "the number of tasks is not set before all options are known");
    tap_ok(side_type_hvd("off") == 0 && fake_option_count() == 1 &&
               side_has_variable("SLURM_PMIX_TIMEOUT", NULL) &&
               side_has_variable(HVD_ENV_REQUEST, NULL),
           "a later --hvd=off undoes everything");
    fake_unload(&plugin);
}

/* True if the plugin makes srun ask for these numbers of tasks, per node and in all;
 * NULL: for no number. */
static bool asks(const char *per_node, const char *tasks)
{
    struct fake_plugin plugin;
    bool is_right;

    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    is_right =
        side_has_option("ntasks-per-node", per_node) && side_has_option("ntasks", tasks);
    fake_unload(&plugin);
    return is_right;
}

static void test_tasks(void)
{
    static const char *const other_ways[] = {"ntasks-per-core", "ntasks-per-socket",
                                             "ntasks-per-gpu", "ntasks-per-tres"};

    side_enter_job();
    tap_ok(asks("4", "8"), "in a job, srun asks for one task per GPU on each node");
    side_enter_job();
    fake_type_option("nodes", "1");
    tap_ok(asks("4", "4"), "with --nodes=1, srun asks for the tasks of one node");
    side_enter_job();
    fake_type_option("gres", "gres:gpu:2");
    tap_ok(asks("2", "4"),
           "if the step has fewer GPUs than the job, srun asks for fewer tasks");
    side_enter_job();
    fake_type_option("gres", "none");
    tap_ok(asks(NULL, NULL), "for a step without GPUs, srun asks for no number of tasks");
    side_enter_job();
    fake_type_option("ntasks", "3");
    tap_ok(asks(NULL, "3"), "a number of tasks that the user chose is kept");
    for (size_t i = 0; i < sizeof(other_ways) / sizeof(other_ways[0]); i++) {
        side_enter_job();
        fake_type_option(other_ways[i], "2");
        tap_ok(asks(NULL, NULL), "a number of tasks chosen by --%s is kept",
               other_ways[i]);
    }
    clearenv();
    fake_reset(S_CTX_LOCAL);
    fake_type_option("nodes", "3");
    fake_type_option("gpus-per-node", "a100:2");
    tap_ok(asks("2", "6"),
           "outside of a job, srun asks for one task for each GPU in its options");
    clearenv();
    fake_reset(S_CTX_LOCAL);
    tap_ok(asks(NULL, NULL), "without GPUs, srun asks for no number of tasks");
}

static void test_user_wins(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    fake_type_option("mpi", "pmix_v4");
    fake_type_option("kill-on-bad-exit", "0");
    fake_type_option("gpu-bind", "single:1");
    fake_type_option("ntasks", "2");
    setenv("SLURM_PMIX_TIMEOUT", "5", 1);
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_has_option("mpi", "pmix_v4") &&
               side_has_option("kill-on-bad-exit", "0") &&
               side_has_option("gpu-bind", "single:1") &&
               side_has_option("ntasks-per-node", NULL) &&
               side_has_variable("SLURM_PMIX_TIMEOUT", "5"),
           "options that the user typed before --hvd are kept");
    side_type_hvd("off");
    tap_ok(side_has_option("mpi", "pmix_v4") && side_has_option("ntasks", "2") &&
               side_has_variable("SLURM_PMIX_TIMEOUT", "5"),
           "--hvd=off leaves the user's options alone");
    fake_unload(&plugin);

    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    fake_type_option("mpi", "pmi2");
    side_type_hvd("off");
    tap_ok(side_has_option("mpi", "pmi2"),
           "options that the user typed after --hvd are kept");
    fake_unload(&plugin);
}

/* True if the plugin leaves all GPUs in each task of a step. of_job and used are the
 * bindings of GPUs in the environment of the job and in srun's options. */
static bool offers_all_gpus(const char *of_job, const char *used)
{
    struct fake_plugin plugin;
    bool offers;

    side_enter_job();
    setenv("SLURM_TRES_BIND", of_job, 1);
    fake_type_option("tres-bind", used);
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    offers = side_has_option("gpu-bind", "none");
    fake_unload(&plugin);
    return offers;
}

static void test_gpus_per_task(void)
{
    tap_ok(
        offers_all_gpus("gres/gpu:per_task:1", "gres/gpu:per_task:1"),
        "all GPUs are left in each task if Slurm made the binding for --gpus-per-task");
    tap_ok(!offers_all_gpus("gres/gpu:per_task:1", "gres/gpu:single:1"),
           "a binding of GPUs that the user chose for the step is kept");
    tap_ok(!offers_all_gpus("gres/gpu:closest", "gres/gpu:closest"),
           "a binding of GPUs that the user chose for the job is kept");
}

static void test_keys(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd("tasks=keep");
    plugin.init_post_opt(NULL, 0, NULL);
    tap_ok(side_has_option("ntasks-per-node", NULL) && side_has_option("mpi", "pmix"),
           "tasks=keep leaves the number of tasks alone");
    side_type_hvd("gpus=keep");
    plugin.init_post_opt(NULL, 0, NULL);
    tap_ok(side_has_option("gpu-bind", NULL) && side_has_option("ntasks-per-node", "4"),
           "a second --hvd replaces the first; gpus=keep leaves --gpu-bind alone");
    fake_unload(&plugin);
    side_enter_job();
    side_start(&plugin, "mpi=keep");
    side_type_hvd(NULL);
    tap_ok(side_has_option("mpi", NULL), "the admin's mpi=keep leaves --mpi alone");
    fake_unload(&plugin);
    side_enter_job();
    side_start(&plugin, "default=on");
    tap_ok(side_has_variable(HVD_ENV_SLURM_OPTION, "on"),
           "the admin's default=on reaches srun as an inherited --hvd");
    fake_unload(&plugin);
}

static void test_texts(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    side_start(&plugin, NULL);
    tap_ok(side_type_hvd("bind=numa") < 0 &&
               strstr(fake_messages, "bind=socket|cores|none"),
           "a wrong word is refused, and the message lists the valid ones");
    fake_unload(&plugin);
    fake_reset(S_CTX_ALLOCATOR);
    side_start(&plugin, NULL);
    tap_ok(side_type_hvd("wrong") < 0 && side_type_hvd("verbose") == 0 &&
               fake_option_count() == 0,
           "sbatch and salloc check the text and change nothing");
    fake_unload(&plugin);
}

static void test_refusals(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_status_of_check(&plugin) == -1, "a job that fits goes on");
    fake_type_option("mpi", "none");
    tap_ok(side_status_of_check(&plugin) == -1,
           "a job with --mpi=none that fits goes on, too");
    fake_unload(&plugin);

    side_enter_job();
    setenv("SLURM_JOB_CPUS_PER_NODE", "16,2", 1);
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_status_of_check(&plugin) == 1, "too few cpus on one node end srun");
    fake_type_option("ntasks", "2");
    tap_ok(side_status_of_check(&plugin) == -1,
           "too few cpus do not end srun if the user chose the number of tasks");
    fake_unload(&plugin);

    side_enter_job();
    setenv("SLURM_GPUS", "6", 1);
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_status_of_check(&plugin) == 1, "nodes that differ in GPUs end srun");
    fake_unload(&plugin);

    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    fake_type_option("ntasks", "9");
    tap_ok(side_status_of_check(&plugin) == 1, "more tasks than GPUs end srun");
    fake_unload(&plugin);
}

int main(int count, char **arguments)
{
    side_begin(count, arguments);
    test_without_option();
    test_offers();
    test_tasks();
    test_user_wins();
    test_gpus_per_task();
    test_keys();
    test_texts();
    test_refusals();
    side_install_pmix(false);
    return tap_done();
}
