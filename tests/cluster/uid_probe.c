/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that records as which user Slurm calls a plugin: one line for each callback,
 * in the file that plugstack.conf names. */
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <unistd.h>

const char plugin_name[] = "uid_probe";
const char plugin_type[] = "spank";
const unsigned int plugin_version = PROBE_SLURM_VERSION;
const unsigned int spank_plugin_version = 1;

static const char *log_path = "/dev/null";

static int note(const char *callback)
{
    static const char *const contexts[] = {"error", "srun",   "stepd",
                                           "alloc", "slurmd", "script"};
    uid_t real;
    uid_t effective;
    uid_t saved;
    FILE *file = fopen(log_path, "ae");

    if (file != NULL && getresuid(&real, &effective, &saved) == 0) {
        fprintf(file, "%s %s %d/%d/%d\n", contexts[spank_context()], callback, (int)real,
                (int)effective, (int)saved);
    }
    if (file != NULL) {
        fclose(file);
    }
    return 0;
}

static int take_option(int value, const char *text, int is_remote)
{
    (void)value;
    (void)text;
    (void)is_remote;
    return note("option");
}

static struct spank_option option = {
    .name = "probe", .usage = "write user ids", .cb = take_option};

int slurm_spank_init(spank_t spank, int count, char **words)
{
    log_path = count > 0 ? words[0] : log_path;
    spank_option_register(spank, &option);
    return note("init");
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    return note("init_post_opt");
}

int slurm_spank_local_user_init(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    return note("local_user_init");
}

int slurm_spank_user_init(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    return note("user_init");
}

int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    return note("task_init");
}

int slurm_spank_exit(spank_t spank, int count, char **words)
{
    (void)spank;
    (void)count;
    (void)words;
    return note("exit");
}
