/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of srun's side of the plugin share. */
#include "tests/spank/srun_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *plugin_path;

/* The file that represents Slurm's PMIx plugin. hvd's plugin looks for Slurm's plugins in
 * the folder of srun's option functions, which are in this program. */
static char pmix_path[4096];

void side_install_pmix(bool is_there)
{
    if (is_there) {
        fclose(fopen(pmix_path, "w"));
    } else {
        unlink(pmix_path);
    }
}

void side_enter_job(void)
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

void side_start(struct fake_plugin *plugin, char *word)
{
    fake_load(plugin, plugin_path);
    plugin->init(NULL, word != NULL ? 1 : 0, &word);
}

int side_type_hvd(const char *text)
{
    return fake_registered->cb(fake_registered->val, text, 0);
}

bool side_has_option(const char *name, const char *value)
{
    const char *found = fake_option(name);

    return value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0;
}

bool side_has_variable(const char *name, const char *value)
{
    const char *found = getenv(name);

    return value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0;
}

int side_status_of_check(struct fake_plugin *plugin)
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

void side_begin(int count, char **arguments)
{
    plugin_path = count > 1 ? arguments[1] : "";
    snprintf(pmix_path, sizeof(pmix_path), "%.*s/mpi_pmix.so",
             (int)(strrchr(arguments[0], '/') - arguments[0]), arguments[0]);
    side_install_pmix(true);
}
