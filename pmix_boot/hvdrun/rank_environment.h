/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of one rank: hvdrun's own, what options set, and the variables that a
 * launcher hands to libhvd (gpu_binding/base/env.h). */
#ifndef HVDRUN_RANK_ENVIRONMENT_H
#define HVDRUN_RANK_ENVIRONMENT_H

#include <stddef.h>

#include "gpu_binding/plan.h"
#include "pmix_boot/hvdrun/string_list.h"

struct hvdrun_rank_environment {
    const char *const *inherited; /* a list like environ */
    /* variables that options set; they win over inherited ones */
    const struct hvdrun_string_list *settings;
    int ranks;
    const char *host;
    const char *python_directory; /* for the package horovod; NULL: none */
    const struct hvd_plan *plan; /* NULL: nothing is bound */
    bool has_terminal; /* stderr of the ranks reaches a terminal unchanged */
    /* file in which ranks record which rank failed first; NULL: none */
    const char *cause;
    int master_port; /* port reserved for torch.distributed; 0: none */
    bool is_elastic;
    /* Host of the rendezvous service, or the path of its socket. */
    const char *service_host;
    const char *service; /* "PORT:KEY" of the service; NULL: none */
};

/* Makes the environment of a rank. The caller finishes *out, also after a failure. */
int hvdrun_rank_environment_make(const struct hvdrun_rank_environment *all, int rank,
                                 struct hvdrun_string_list *out, struct hvd_error *err);

/* Finds the directory that holds the package "horovod", relative to this program so that
 * an installed tree can be moved. The path is empty if there is none. */
void hvdrun_python_directory(char *path, size_t bytes);

#endif
