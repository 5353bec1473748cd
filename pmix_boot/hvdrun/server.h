/* SPDX-License-Identifier: Apache-2.0 */
/* The PMIx server of one job whose ranks all live on this node. */
#ifndef HVDRUN_SERVER_H
#define HVDRUN_SERVER_H

#include "gpu_binding/base/error.h"
#include "pmix_boot/hvdrun/string_list.h"

/* A rank called PMIx_Abort. Written whole to the job's abort_fd. */
struct hvdrun_abort {
    int rank;
    int status;
    char text[256];
};

struct hvdrun_job {
    int ranks;
    const char *host; /* this node's name */
    const char *directory; /* for sockets and files of the server; the job's own */
    int abort_fd; /* a pipe's end for struct hvdrun_abort */
};

/* Starts the server, on a thread of libpmix that takes the caller's signal mask. One job per
 * process; it is borrowed until hvdrun_server_stop. */
int hvdrun_server_start(const struct hvdrun_job *job, struct hvd_error *err);

/* Adds what rank needs to find the server. */
int hvdrun_server_export(int rank, struct hvdrun_string_list *environment,
                         struct hvd_error *err);

/* Takes 3 s at most: if libpmix hangs, it is left to the end of the process. */
void hvdrun_server_stop(void);

#endif
