/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside a stand-in for srun, with the command line of a program that
 * starts the ranks of its node. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/srun_side.h"
#include "tests/tap.h"

/* This program's own command line, which /proc/self/cmdline shows. */
static char *command_line;
static size_t command_bytes;

/* Writes the command line `words` over this program's own, and sets optind as if getopt
 * had read the first `options` words. */
static void type_command(const char *words, int options)
{
    memset(command_line, 0, command_bytes);
    for (size_t i = 0; words[i] != '\0' && i < command_bytes - 1; i++) {
        command_line[i] = words[i] == ' ' ? '\0' : words[i];
    }
    optind = options;
}

/* Loads the plugin, gives it --hvd=text, and lets it check the options, in a job of 8
 * ranks. */
static void settle(struct fake_plugin *plugin, const char *text)
{
    side_start(plugin, NULL);
    side_type_hvd(text);
    plugin->init_post_opt(NULL, 0, NULL);
}

static bool has_agents(void)
{
    return side_has_option("ntasks", "2") && side_has_option("ntasks-per-node", "1");
}

static void test_choice(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    type_command("srun --hvd torchrun train.py", 2);
    settle(&plugin, NULL);
    tap_ok(has_agents(), "torchrun is started once per node");
    tap_ok(strstr(fake_messages, "torchrun starts the ranks of its node itself") != NULL,
           "the user is told so");
    fake_step.tasks = 2;
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0, "the step starts");
    fake_step.tasks = 8;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) < 0 &&
               strstr(fake_messages, "one task per node, on 2 nodes, but Slurm starts 8"),
           "a step that has more tasks after all does not start");
    fake_step.nodes = 1;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) < 0 &&
               strstr(fake_messages, "one task per node, on 1 node, but Slurm starts 8"),
           "one node is named in the singular");
    plugin.exit(NULL, 0, NULL);
    fake_unload(&plugin);

    side_enter_job();
    type_command("srun --hvd python train.py", 2);
    settle(&plugin, NULL);
    tap_ok(side_has_option("ntasks", "8") && fake_messages[0] == '\0',
           "python is started once per GPU");
    fake_unload(&plugin);

    side_enter_job();
    type_command("srun --hvd sh torchrun", 2);
    settle(&plugin, "tasks=node");
    tap_ok(has_agents() && fake_messages[0] == '\0',
           "with tasks=node, any program is started once per node");
    fake_unload(&plugin);

    side_enter_job();
    type_command("srun --hvd torchrun train.py", 2);
    settle(&plugin, "tasks=keep");
    tap_ok(side_has_option("ntasks", NULL), "with tasks=keep, Slurm chooses the number");
    fake_unload(&plugin);
    side_enter_job();
    settle(&plugin, "elastic");
    tap_ok(plugin.local_user_init(NULL, 0, NULL) < 0 &&
               strstr(fake_messages, "but torchrun starts ranks itself: start the script "
                                     "without torchrun") != NULL,
           "an elastic step of torchrun does not start");
    plugin.exit(NULL, 0, NULL);
    fake_unload(&plugin);
}

static void test_numbers(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    type_command("srun --hvd torchrun train.py", 2);
    fake_type_option("ntasks-per-node", "3");
    fake_type_option("ntasks", "6");
    setenv("SLURM_CPUS_PER_TASK", "5", 1);
    setenv("SLURM_GPUS_PER_TASK", "1", 1);
    fake_type_option("gpus-per-task", "1");
    settle(&plugin, NULL);
    tap_ok(has_agents() && side_has_variable(HVD_ENV_AGENT_RANKS, "6"),
           "a number of tasks of the job becomes the number of ranks");
    tap_ok(side_has_option("cpus-per-task", NULL) &&
               side_has_option("gpus-per-task", NULL) &&
               side_has_option("gpus-per-node", "4"),
           "the CPUs and GPUs per task of the job do not limit the task to those of one "
           "rank");
    fake_unload(&plugin);

    side_enter_job();
    type_command("srun --hvd --ntasks-per-node 4 torchrun train.py", 4);
    fake_type_option("ntasks-per-node", "4");
    fake_type_option("ntasks", "8");
    settle(&plugin, NULL);
    tap_ok(side_has_option("ntasks", "8") && side_has_variable(HVD_ENV_AGENT_RANKS, NULL),
           "a number of tasks on srun's command line is the user's choice");
    fake_unload(&plugin);
    side_enter_job();
    type_command("srun --hvd -n8 sh run.sh", 3);
    fake_type_option("ntasks", "8");
    settle(&plugin, "tasks=node");
    fake_step.tasks = 8;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) < 0 &&
               strstr(fake_messages, "tasks=node needs one task on each node"),
           "tasks=node and another number of tasks are refused");
    plugin.exit(NULL, 0, NULL);
    fake_unload(&plugin);
}

int main(int count, char **arguments)
{
    static char plugin_path[4096];
    char *kept[] = {arguments[0], plugin_path};

    snprintf(plugin_path, sizeof(plugin_path), "%s", count > 1 ? arguments[1] : "");
    side_begin(2, kept);
    command_line = arguments[0];
    command_bytes =
        (size_t)(arguments[count - 1] - arguments[0]) + strlen(arguments[count - 1]) + 1;
    test_choice();
    test_numbers();
    side_install_pmix(false);
    return tap_done();
}
