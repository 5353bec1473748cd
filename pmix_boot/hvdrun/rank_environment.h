/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of one rank: hvdrun's own, what options set, and the variables that a
 * launcher hands to libhvd (gpu_binding/base/env.h). */
#ifndef HVDRUN_RANK_ENVIRONMENT_H
#define HVDRUN_RANK_ENVIRONMENT_H

#include <stddef.h>

#include "gpu_binding/plan.h"
#include "pmix_boot/hvdrun/string_list.h"

struct hvdrun_rank_environment {
    const char *const *inherited; /* as environ */
    const struct hvdrun_string_list *settings; /* they win over what is inherited */
    int ranks;
    const char *host;
    const char *python_directory; /* of the front end; NULL: there is none */
    const struct hvd_plan *plan; /* NULL: nothing is bound */
    bool has_terminal; /* what ranks write to stderr ends on one, as it is */
    const char *cause; /* file in which ranks tell who failed; NULL: none */
    int master_port; /* of torch.distributed, kept free on this machine; 0: none */
    bool is_elastic;
    /* Of the job's rendezvous service, a host or the path of a socket. */
    const char *service_host;
    const char *service; /* "PORT:KEY" of it; NULL: none */
};

/* *out is the caller's, also after a failure. */
int hvdrun_rank_environment_make(const struct hvdrun_rank_environment *all, int rank,
                                 struct hvdrun_string_list *out, struct hvd_error *err);

/* The directory that holds the package "horovod", found from the place of this program so
 * that an installed tree can be moved; empty when there is none. */
void hvdrun_python_directory(char *path, size_t bytes);

#endif
