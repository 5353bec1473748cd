/* SPDX-License-Identifier: Apache-2.0 */
/* Puts hvd's front end, the package "horovod", on PYTHONPATH, and finds other packages of
 * that name.
 *
 * The directory goes to the end of PYTHONPATH. There it precedes the packages of virtual
 * environments and of the system, so that --hvd selects hvd even if the original Horovod
 * is installed; but a directory that the user put on PYTHONPATH comes first. Either order
 * can surprise the user: hvd_spank_python_find_other finds the other package, for a
 * message. */
#ifndef HVD_SPANK_PYTHON_H
#define HVD_SPANK_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the directory of the front end. The plugin was built for the path built_plugin,
 * the front end for built_dir. If the plugin now lies below another root (an install with
 * DESTDIR, an image mounted elsewhere), so does the front end. False if the result does
 * not fit. Pure. */
bool hvd_spank_python_folder(const char *plugin, const char *built_plugin,
                             const char *built_dir, char *dir, size_t bytes);

/* Appends dir to path unless it is already an entry; NULL or an empty path becomes dir
 * alone. Returns false, and leaves joined unchanged, if the result does not fit. Pure. */
bool hvd_spank_python_path(const char *path, const char *dir, char *joined, size_t bytes);

/* Writes path without the entry dir. Returns false, and leaves rest unchanged, if the
 * result does not fit. Pure. */
bool hvd_spank_python_path_without(const char *path, const char *dir, char *rest,
                                   size_t bytes);

/* Looks for another package "horovod": in the directories of path before dir, where
 * Python finds it first (*wins is then true), and in the environment env_root (a virtual
 * environment or conda; NULL if there is none). Returns true and writes its directory if
 * there is one. It reads directories: never call it as root. */
bool hvd_spank_python_find_other(const char *path, const char *dir, const char *env_root,
                                 char *other, size_t bytes, bool *wins);

#endif
