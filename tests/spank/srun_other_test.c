/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside an srun that does not export its option functions. */
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/fake_spank.h"
#include "tests/tap.h"

static bool has_variable(const char *name, const char *value)
{
    const char *found = getenv(name);

    return value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0;
}

static void start(struct fake_plugin *plugin, const char *path, const char *inherited)
{
    clearenv();
    if (inherited != NULL) {
        setenv(HVD_ENV_SLURM_OPTION, inherited, 1);
    }
    fake_reset(S_CTX_LOCAL);
    fake_step.tasks = 2;
    fake_step.nodes = 1;
    fake_load(plugin, path);
    plugin->init(NULL, 0, NULL);
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "";
    const bool is_installed = count > 3 && access(arguments[3], X_OK) == 0;
    struct fake_plugin plugin;

    start(&plugin, path, "(null)");
    tap_ok(has_variable("SLURM_MPI_TYPE", "pmix"), "--hvd of the job switches PMIx on");
    fake_unload(&plugin);
    start(&plugin, path, "off");
    tap_ok(has_variable("SLURM_MPI_TYPE", NULL),
           "--hvd=off of the job does not switch PMIx on");
    fake_unload(&plugin);
    start(&plugin, path, "rubbish");
    tap_ok(has_variable("SLURM_MPI_TYPE", NULL),
           "an invalid --hvd of the job does not switch PMIx on");
    fake_unload(&plugin);
    start(&plugin, path, NULL);
    tap_ok(has_variable("SLURM_MPI_TYPE", NULL),
           "a job without --hvd does not switch PMIx on");
    fake_registered->cb(fake_registered->val, NULL, 0);
    tap_ok(plugin.init_post_opt(NULL, 0, NULL) == 0, "--hvd of srun itself is accepted");
    tap_ok((plugin.local_user_init(NULL, 0, NULL) == 0) == is_installed &&
               has_variable(HVD_ENV_RENDEZVOUS_STEP, NULL) != is_installed,
           "without PMIx, the ranks get hvd's own service");
    plugin.exit(NULL, 0, NULL);
    fake_unload(&plugin);
    return tap_done();
}
