/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of slurmstepd's side of the plugin share. */
#include "tests/spank/stepd_side.h"

#include <stddef.h>

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
