/* SPDX-License-Identifier: Apache-2.0 */
/* How Python finds hvd's front end, the package "horovod", and other packages of this
 * name.
 *
 * The directory goes to the end of PYTHONPATH. There it precedes the packages of virtual
 * environments and of the system, so that --hvd means hvd although the original Horovod
 * is installed; but a directory that the user put on PYTHONPATH comes first. Both can
 * surprise: hvd_spank_python_find_other finds the other package, for a message. */
#ifndef HVD_SPANK_PYTHON_H
#define HVD_SPANK_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* Where the front end is, when the plugin was built to lie at built_plugin and the front
 * end at built_dir: there, or below the same other root as the plugin (an install with
 * DESTDIR, an image mounted elsewhere). False when that does not fit. Pure. */
bool hvd_spank_python_folder(const char *plugin, const char *built_plugin,
                             const char *built_dir, char *dir, size_t bytes);

/* Writes path with dir at its end, once, or dir alone when path is NULL or empty. False,
 * and joined untouched, when it does not fit. Pure. */
bool hvd_spank_python_path(const char *path, const char *dir, char *joined, size_t bytes);

/* Writes path without dir. False, and rest untouched, when it does not fit. Pure. */
bool hvd_spank_python_path_without(const char *path, const char *dir, char *rest,
                                   size_t bytes);

/* Looks for another package "horovod": below the directories of path before dir (then
 * Python imports it: *wins), and in the environment env_root (a virtual environment or
 * conda; NULL: none). Reads directories: never call it as root. True when there is one;
 * its directory is written. */
bool hvd_spank_python_find_other(const char *path, const char *dir, const char *env_root,
                                 char *other, size_t bytes, bool *wins);

#endif
