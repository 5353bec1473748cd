/* SPDX-License-Identifier: Apache-2.0 */
/* Reads plugstack.conf and the files that it includes, as Slurm does. */
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
    char file[PATH_MAX]; /* contains the line */
    int number;
    char text[PATH_MAX]; /* the plugin's path, the pattern, or the first word */
    /* what follows the path of a plugin; borrowed during the call, which may change it */
    char *words;
};

/* Calls `take` for each line of one of the kinds above, in the order in which Slurm reads
 * them. plugin_dir: PluginDir of slurm.conf, directories separated by ':', in which Slurm
 * looks for plugins without a path; may be empty. A missing file counts as empty. */
void hvd_info_plugstack_read(const char *file, const char *plugin_dir,
                             void (*take)(void *context,
                                          const struct hvd_info_plugstack_line *line),
                             void *context);

#endif
