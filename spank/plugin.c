/* SPDX-License-Identifier: Apache-2.0 */
/* Configures the plugin from plugstack.conf and --hvd. */
#include "spank/plugin.h"

#include <dlfcn.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>

#include "spank/python.h"

/* Finds the files of this installation from the path of the plugin, because the
 * installation may have been moved below another root directory. */
static void find_files(struct hvd_spank_plugin *plugin, char python_dir[PATH_MAX])
{
    Dl_info self;

    snprintf(python_dir, PATH_MAX, "%s", HVD_PYTHON_DIR);
    snprintf(plugin->rendezvous_program, sizeof(plugin->rendezvous_program), "%s",
             HVD_RENDEZVOUS_PROGRAM);
    if (dladdr((void *)find_files, &self) != 0) {
        hvd_spank_python_folder(self.dli_fname, HVD_PLUGIN_PATH, HVD_PYTHON_DIR,
                                python_dir, PATH_MAX);
        hvd_spank_python_folder(self.dli_fname, HVD_PLUGIN_PATH, HVD_RENDEZVOUS_PROGRAM,
                                plugin->rendezvous_program,
                                sizeof(plugin->rendezvous_program));
    }
}

static int register_option(struct spank_handle *spank,
                           hvd_spank_option_callback *callback)
{
    static char usage[HVD_SPANK_OPTIONS_HELP_BYTES];
    static struct spank_option option = {
        .name = "hvd",
        .arginfo = "WORD,...",
        .usage = usage,
        .has_arg = 2,
    };

    option.cb = callback;
    hvd_spank_options_help(usage);
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : HVD_ERR_STATE;
}

int hvd_spank_plugin_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank,
                          hvd_spank_option_callback *callback, int count, char **words)
{
    char python_dir[PATH_MAX];
    struct hvd_error err;
    int status;

    find_files(plugin, python_dir);
    hvd_spank_plugstack_init(&plugin->plugstack, python_dir);
    for (int i = 0; i < count; i++) {
        if (hvd_spank_plugstack_parse(words[i], &plugin->plugstack, &err) != 0) {
            slurm_error("hvd: %s", err.text);
        }
    }
    status = register_option(spank, callback);
    if (status != 0) {
        slurm_error(
            "hvd: cannot register --hvd: another plugin of plugstack.conf may have "
            "registered this option already");
    }
    return status;
}

int hvd_spank_plugin_option(struct hvd_spank_plugin *plugin, const char *text,
                            bool is_remote)
{
    const struct hvd_spank_site_rules *rules = &plugin->plugstack.rules;
    struct hvd_spank_options options;
    struct hvd_error err = {0};

    int status = hvd_spank_options_parse(text, &options, &err);

    if (status == 0) {
        status = hvd_spank_site_rules_apply(rules, text, &options, &err);
    }
    if (status == 0) {
        plugin->options = options;
        return 0;
    }
    if (!is_remote) {
        slurm_error("hvd: %s", err.text);
        return -1;
    }
    plugin->options.is_on = true;
    plugin->refusal = err;
    return 0;
}
