/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks that Slurm knows, each handed to the file for its context.
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
 *                root 0/0/0       option            checks the text and keeps a record of
 *                                                   ints and of file names that it does not
 *                                                   look at, or the reason why not
 *                root 0/0/0       init_post_opt     copies five variables of the step,
 *                                                   with limits (stepd.c)
 *                0/user/0         user_init         reads the topology (stepd.c)
 *                root 0/0/0       exit              frees memory
 *   task         user/user/user   task_init         plans, binds, exports (task.c)
 *   batch script user/user/user   task_init         exports PYTHONPATH (task_env.c)
 *
 * As root hvd opens no file, reads no variable of its own process, starts nothing, waits for
 * nothing and changes no environment. Callbacks that run as root and are not needed
 * (task_init_privileged, task_post_fork, task_exit, prolog, epilog) do not exist. */
#include <dlfcn.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "spank/launch.h"
#include "spank/python.h"
#include "spank/srun.h"
#include "spank/stepd.h"
#include "spank/task.h"

SPANK_PLUGIN(hvd, 1)

static struct hvd_launch launch;

static int take_option(int value, const char *text, int is_remote);

/* As `srun --help` shows it. */
static char usage[HVD_OPTION_LIST_BYTES + 128];

static struct spank_option option = {
    .name = "hvd",
    .arginfo = "WORD,...",
    .usage = usage,
    .has_arg = 2,
    .cb = take_option,
};

static void write_usage(void)
{
    char known[HVD_OPTION_LIST_BYTES];

    hvd_options_list(known);
    snprintf(
        usage, sizeof(usage),
        "start ranks for hvd (Horovod): PMIx on, one task per GPU, each bound near it; "
        "words: %s",
        known);
}

static void read_admin(int word_count, char **words)
{
    static char elastic_program[PATH_MAX] = HVD_ELASTIC_PROGRAM;
    char dir[PATH_MAX] = HVD_PYTHON_DIR;
    struct hvd_error err;
    Dl_info self;

    if (dladdr((void *)read_admin, &self) != 0) {
        hvd_python_place(self.dli_fname, HVD_PLUGIN_PATH, HVD_PYTHON_DIR, dir,
                         sizeof(dir));
        hvd_python_place(self.dli_fname, HVD_PLUGIN_PATH, HVD_ELASTIC_PROGRAM,
                         elastic_program, sizeof(elastic_program));
    }
    hvd_admin_init(&launch.admin, dir);
    launch.admin.elastic_program = elastic_program;
    for (int i = 0; i < word_count; i++) {
        if (hvd_admin_parse(words[i], &launch.admin, &err) != 0) {
            slurm_error("hvd: plugstack.conf: %s", err.text);
        }
    }
}

int slurm_spank_init(spank_t spank, int word_count, char **words)
{
    enum spank_context context = spank_context();

    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) {
        return 0;
    }
    read_admin(word_count, words);
    write_usage();
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
        slurm_error("hvd: cannot register --hvd; does another plugin have it?");
        return 0;
    }
    if (context == S_CTX_LOCAL) {
        hvd_srun_init(&launch);
    }
    return 0;
}

/* A bad text is the user's to see in srun, sbatch and salloc. In slurmstepd, where a failure
 * would drain the node, it is kept for the tasks to report. */
static int take_option(int value, const char *text, int is_remote)
{
    struct hvd_error err = {0};

    (void)value;
    if (hvd_options_parse(text, &launch.options, &err) != 0) {
        if (!is_remote) {
            slurm_error("hvd: %s", err.text);
            return -1;
        }
        launch.options.is_on = true;
        launch.refusal = err;
        return 0;
    }
    if (!is_remote && spank_context() == S_CTX_LOCAL) {
        hvd_srun_option(&launch);
    }
    return 0;
}

/* What hvd refuses before anything is allocated ends srun here: Slurm ignores the failure of
 * an optional plugin, and a plugin that is not optional can stop a whole cluster. */
static void check_or_end(void)
{
    if (hvd_srun_check(&launch) != 0) {
        slurm_error("hvd: %s", launch.refusal.text);
        exit(EXIT_FAILURE);
    }
}

int slurm_spank_init_post_opt(spank_t spank, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    switch (spank_context()) {
    case S_CTX_LOCAL:
        check_or_end();
        return 0;
    case S_CTX_REMOTE:
        hvd_stepd_read(&launch, spank);
        return 0;
    default:
        return 0;
    }
}

int slurm_spank_local_user_init(spank_t spank, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    if (hvd_srun_launch(&launch, spank) != 0) {
        slurm_error("hvd: %s", launch.refusal.text);
        return -1;
    }
    return 0;
}

int slurm_spank_user_init(spank_t spank, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    hvd_stepd_prepare(&launch, spank);
    return 0;
}

/* A task that must not start ends here: see check_or_end. */
int slurm_spank_task_init(spank_t spank, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    if (hvd_task_prepare(&launch, spank) != 0) {
        _exit(EXIT_FAILURE);
    }
    return 0;
}

int slurm_spank_exit(spank_t spank, int word_count, char **words)
{
    (void)spank;
    (void)word_count;
    (void)words;
    if (spank_context() == S_CTX_LOCAL) {
        hvd_srun_exit(&launch);
    } else if (spank_context() == S_CTX_REMOTE) {
        hvd_stepd_finish(&launch);
    }
    return 0;
}
