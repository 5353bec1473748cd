/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of slurmstepd's side of the plugin share. */
#include "tests/spank/stepd_side.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *plugin_path;

void side_enter_step(void)
{
    fake_reset(S_CTX_REMOTE);
    fake_step = (struct fake_step){
        .nodes = 2, .node = 1, .tasks = 4, .local_tasks = 2, .rank = 3, .local_rank = 1};
    fake_step_setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2)");
    fake_step_setenv("SLURM_STEP_GPUS", "0,1");
    fake_step_setenv("CUDA_VISIBLE_DEVICES", "0,1");
    fake_step_setenv("SLURM_CPU_BIND_TYPE", "");
}

void side_start_with(struct fake_plugin *plugin, const char *text, int count,
                     char **words)
{
    fake_load(plugin, plugin_path);
    plugin->init(NULL, count, words);
    if (text != NULL) {
        fake_registered->cb(fake_registered->val, text, 1);
        fake_registered->cb(fake_registered->val, text, 1);
    }
    plugin->init_post_opt(NULL, 0, NULL);
}

void side_start(struct fake_plugin *plugin, const char *text)
{
    char *words[] = {"pythonpath=/usr"};

    side_start_with(plugin, text, 1, words);
}

void side_finish(struct fake_plugin *plugin)
{
    plugin->exit(NULL, 0, NULL);
    fake_unload(plugin);
}

void side_begin(const char *path)
{
    plugin_path = path;
}

void side_load(struct fake_plugin *plugin)
{
    fake_load(plugin, plugin_path);
}

int side_run_task(struct fake_plugin *plugin, bool (*check)(void))
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        plugin->task_init(NULL, 0, NULL);
        _exit(check() ? 0 : 2);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool side_is(const char *name, const char *value)
{
    const char *found = fake_step_getenv(name);

    if (value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0) {
        return true;
    }
    fprintf(stderr, "%s is %s, expected %s\n", name, found != NULL ? found : "unset",
            value != NULL ? value : "unset");
    return false;
}

static const char *wanted; /* see side_task_has */

static bool is_as_wanted(const char *word)
{
    const char *value = strchr(word, '=');
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="),
             word + (value == NULL ? 1 : 0));
    return word[0] == '+' ? fake_step_getenv(name) != NULL
                          : side_is(name, value != NULL ? value + 1 : NULL);
}

static bool has_wanted(void)
{
    char text[512];
    char *save = NULL;
    bool good = true;

    snprintf(text, sizeof(text), "%s", wanted);
    for (char *word = strtok_r(text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        good = is_as_wanted(word) && good;
    }
    return good;
}

bool side_task_has(struct fake_plugin *plugin, const char *variables)
{
    wanted = variables;
    return side_run_task(plugin, has_wanted) == 0;
}
