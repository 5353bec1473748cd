/* SPDX-License-Identifier: Apache-2.0 */
/* Reads plugstack.conf, with the files that it includes, by Slurm's rules. */
#ifndef HVD_INFO_PLUGSTACK_H
#define HVD_INFO_PLUGSTACK_H

#include <limits.h>
#include <stdbool.h>

#include "gpu_binding/base/error.h"

enum hvd_info_plugstack_kind {
    HVD_INFO_PLUGSTACK_REQUIRED,
    HVD_INFO_PLUGSTACK_OPTIONAL,
    HVD_INFO_PLUGSTACK_EMPTY, /* an include that matches no file */
    HVD_INFO_PLUGSTACK_INVALID, /* Slurm ignores the line */
    HVD_INFO_PLUGSTACK_UNREADABLE, /* the file cannot be read: `text` is the reason */
};

struct hvd_info_plugstack_line {
    enum hvd_info_plugstack_kind kind;
    char file[PATH_MAX]; /* which has the line */
    int number;
    char text[PATH_MAX]; /* the plugin's path, the pattern, or the first word */
};

/* Calls `take` for each line that loads a plugin, and for each one of the other kinds, in
 * the order in which Slurm reads them. plugin_dir: PluginDir of slurm.conf, directories
 * separated by ':', in which Slurm looks for plugins without a path; may be empty. A file
 * that does not exist has no lines. */
void hvd_info_plugstack_read(const char *file, const char *plugin_dir,
                             void (*take)(void *context,
                                          const struct hvd_info_plugstack_line *line),
                             void *context);

#endif
