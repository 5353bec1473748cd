/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --hvd=elastic,meet=FILE has one line, "HOST:PORT:KEY", from which a later
 * srun learns the address of the first one's service. An attacker who can write the file
 * could lead the job's ranks to another server. Therefore only a file that belongs to the
 * user, and that no other user may open, is accepted. */
#ifndef HVD_SPANK_RENDEZVOUS_FILE_H
#define HVD_SPANK_RENDEZVOUS_FILE_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

#define HVD_SPANK_RENDEZVOUS_BYTES 256

/* Reads the line. *found is false if there is no file. Returns 0, HVD_ERR_ARG for a file
 * that is not accepted, or HVD_ERR_SYS. */
int hvd_spank_rendezvous_file_read(const char *path,
                                   char address[HVD_SPANK_RENDEZVOUS_BYTES], bool *found,
                                   struct hvd_error *err);

/* Replaces the file atomically: readers see the old line or the new one. Returns 0 or
 * HVD_ERR_SYS. */
int hvd_spank_rendezvous_file_write(const char *path, const char *address,
                                    struct hvd_error *err);

#endif
