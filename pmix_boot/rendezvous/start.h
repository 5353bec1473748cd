/* SPDX-License-Identifier: Apache-2.0 */
/* How a launcher starts the service of an elastic job, a child process of its own. Needs libc
 * alone: the plugin in srun links it. */
#ifndef HVD_RENDEZVOUS_START_H
#define HVD_RENDEZVOUS_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

#define HVD_RENDEZVOUS_START_TEXT_BYTES 96

struct hvd_rendezvous_rules {
    int np; /* ranks that are started */
    int min; /* fewer do not train */
    int max;
    int start_s; /* how long the first generation waits for np */
    int timeout_s; /* how long ranks wait for min */
    int reset_limit; /* -1: none */
    bool is_here; /* all ranks are on this machine */
};

struct hvd_rendezvous_service {
    pid_t pid; /* 0: none */
    int orders;
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES]; /* "PORT:KEY", what follows the host */
};

/* Starts program, the path of hvd-rendezvous. Returns 0, or HVD_ERR_SYS and what failed. */
int hvd_rendezvous_start(const char *program, const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *out, struct hvd_error *err);

/* So many ranks are still to be expected. */
void hvd_rendezvous_expect(const struct hvd_rendezvous_service *service, int ranks);

/* Ends and collects it. One that was not started is fine. */
void hvd_rendezvous_stop(struct hvd_rendezvous_service *service);

#endif
