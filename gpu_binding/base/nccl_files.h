/* SPDX-License-Identifier: Apache-2.0 */
/* HVD_NCCL_FILES: gives each rank the variables with which NCCL writes its warnings to a
 * file of its own. hvd-info --nccl reads these files. */
#ifndef HVD_NCCL_FILES_H
#define HVD_NCCL_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

/* Access to the environment that the rank gets. */
struct hvd_nccl_environment {
    /* Copies the value of a variable, cut to the buffer. Returns false if it is unset. */
    bool (*get)(void *context, const char *name, char *value, size_t bytes);
    /* Sets a variable, over any existing value. Returns 0, or else on failure. */
    int (*set)(void *context, const char *name, const char *value);
    void *context;
};

/* The rank of a process that is not known yet: it starts the ranks of its node. */
#define HVD_NCCL_RANK_UNKNOWN (-1)

/* The parts of a file's name: nccl.RANK.HOST.PID, with "-" for an unknown rank. */
#define HVD_NCCL_FILE_PREFIX "nccl."
#define HVD_NCCL_FILE_NO_RANK "-"

/* Makes the directory of HVD_NCCL_FILES, and its parents, if it is missing, and sets in
 * the environment: HVD_NCCL_FILES (the absolute path), NCCL_DEBUG_FILE, NCCL_DEBUG,
 * NCCL_RAS_ENABLE and, if a directory of LD_LIBRARY_PATH has NCCL's Inspector, its
 * variables. Values that the user set stay; those that an outer launch has made are
 * replaced. Without HVD_NCCL_FILES, nothing happens. Call it before the process loads
 * NCCL. */
int hvd_nccl_files_set(const struct hvd_nccl_environment *environment, int rank,
                       struct hvd_error *err);

/* The same for this process. */
int hvd_nccl_files_set_here(int rank, struct hvd_error *err);

/* Writes the line that ends the report of a failure: the command that shows the files.
 * Returns false, with an empty line, if there is no directory (NULL or empty), `cause`
 * does not tell of a call of NCCL that failed, or the line does not fit. */
bool hvd_nccl_files_advise(const char *directory, const char *cause, char *line,
                           size_t bytes);

#endif
