/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --hvd=elastic,meet=FILE: one line, "HOST:PORT:KEY", by which a further srun
 * finds the service of the first. Who can write it leads a job's ranks to a server of
 * their own, so that only a file of the user that nobody else may open is believed. */
#ifndef HVD_SPANK_RENDEZVOUS_FILE_H
#define HVD_SPANK_RENDEZVOUS_FILE_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

#define HVD_SPANK_RENDEZVOUS_BYTES 256

/* Reads the line. *found is false where there is no file. Returns 0, or HVD_ERR_ARG where
 * there is one that is not believed. */
int hvd_spank_rendezvous_file_read(const char *path,
                                   char address[HVD_SPANK_RENDEZVOUS_BYTES], bool *found,
                                   struct hvd_error *err);

/* Replaces the file. It has its name when it is whole. Returns 0 or HVD_ERR_SYS. */
int hvd_spank_rendezvous_file_write(const char *path, const char *address,
                                    struct hvd_error *err);

#endif
