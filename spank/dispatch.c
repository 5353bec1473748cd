/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm calls these functions; each passes the call on to the file for its process.
 *
 * Where the code runs, and as whom (real, effective, saved user):
 *
 *   process      user             callback          what hvd does there
 *   srun         user             init .. exit      srun.c
 *   sbatch,      user             init, option      checks the text of --hvd
 *   salloc
 *   slurmd       root 0/0/0       init              nothing, returns at once
 *   prolog,      root 0/0/0       init              nothing, returns at once
 *   epilog
 *   slurmstepd   root 0/0/0       init              reads the words of plugstack.conf,
 *                                                   registers the option
 *                root 0/0/0       option            parses the text into ints and file
 *                                                   names, without touching the files, or
 *                                                   keeps the reason for a refusal
 *                root 0/0/0       init_post_opt     copies five variables of the step to
 *                                                   buffers of fixed size (stepd.c)
 *                0/user/0         user_init         reports an invalid text (stepd.c)
 *                root 0/0/0       exit              nothing
 *   task         user/user/user   task_init         reads the topology, plans, binds,
 *                                                   exports (task_init.c)
 *   batch script user/user/user   task_init         exports PYTHONPATH
 *
 * hwloc loads plugins of its own, some of which ask drivers and displays. Therefore the
 * topology is read in the task, which has no user id of root any more. As root, hvd opens
 * no file, reads no variable of its own process, starts nothing, waits for nothing and
 * changes no environment. It does not define the other callbacks that would run as root
 * (task_init_privileged, task_post_fork, task_exit, prolog, epilog). */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#include "spank/plugin.h"
#include "spank/task_init.h"

SPANK_PLUGIN(hvd, 1)

static struct hvd_spank_plugin plugin;

static int take_option(int value, const char *text, int is_remote)
{
    int status = hvd_spank_plugin_option(&plugin, text, is_remote != 0);

    (void)value;
    if (status == 0 && spank_context() == S_CTX_LOCAL) {
        hvd_spank_srun_option(&plugin);
    }
    return status;
}

int slurm_spank_init(spank_t spank, int count, char **words)
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
        if (hvd_spank_plugin_init(&plugin, spank, take_option, count, words) == 0) {
            hvd_spank_srun_init(&plugin);
        }
        return 0;
    case S_CTX_ALLOCATOR:
    case S_CTX_REMOTE:
        hvd_spank_plugin_init(&plugin, spank, take_option, count, words);
        return 0;
    default:
        return 0;
    }
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **words)
{
    (void)count;
    (void)words;
    if (spank_context() == S_CTX_LOCAL) {
        hvd_spank_srun_init_post_opt(&plugin);
    } else if (spank_context() == S_CTX_REMOTE) {
        hvd_spank_stepd_init_post_opt(&plugin, spank);
    }
    return 0;
}

int slurm_spank_local_user_init(spank_t spank, int count, char **words)
{
    (void)count;
    (void)words;
    return hvd_spank_srun_local_user_init(&plugin, spank) == 0 ? 0 : -1;
}

int slurm_spank_user_init(spank_t spank, int count, char **words)
{
    (void)count;
    (void)words;
    hvd_spank_stepd_user_init(&plugin, spank);
    return 0;
}

int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    (void)count;
    (void)words;
    hvd_spank_task_init(&plugin, spank);
    return 0;
}

int slurm_spank_exit(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    if (spank_context() == S_CTX_LOCAL) {
        hvd_spank_srun_exit(&plugin);
    }
    return 0;
}
