/* SPDX-License-Identifier: Apache-2.0 */
/* How a launcher starts the rendezvous service of its job, a child process of its own. Needs libc
 * alone: the plugin in srun links it.
 *
 *   hvd_rendezvous_start(program, &rules, &service, err)   program: LIBDIR/hvd/hvd-rendezvous
 *   for each rank HVD_RENDEZVOUS=HOST:<service.address>, or rules.path in place of HOST;
 *                 HOROVOD_RANK and HOROVOD_SIZE
 *   hvd_rendezvous_ended(&service, rank, wait_status)      where the launcher sees ranks end
 *   hvd_rendezvous_stop(&service)
 *
 * Ranks of a static job need no rules but np and is_here; HVD_ELASTIC in place of HVD_RENDEZVOUS
 * makes a job elastic. */
#ifndef HVD_RENDEZVOUS_START_H
#define HVD_RENDEZVOUS_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

#define HVD_RENDEZVOUS_START_TEXT_BYTES 96

struct hvd_rendezvous_rules {
    int np; /* ranks that are started */
    bool is_here; /* all ranks are on this machine */
    const char
        *ports; /* "FIRST-LAST", one of which it takes where it is not; NULL: any */
    /* Of a socket to be made for them, in place of a TCP port; NULL: none. */
    const char *path;
    /* Of an elastic job: */
    int min; /* fewer do not train */
    int max;
    int start_s; /* how long the first generation waits for np */
    int timeout_s; /* how long ranks wait for min */
    int reset_limit; /* -1: none */
};

struct hvd_rendezvous_service {
    pid_t pid; /* 0: none */
    int orders;
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES]; /* "PORT:KEY", what follows the host */
};

/* Starts program, the path of hvd-rendezvous. Returns 0, or HVD_ERR_SYS and what failed. */
int hvd_rendezvous_start(const char *program, const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *out, struct hvd_error *err);

/* Of an elastic job: a process has ended, and so many ranks are still to be expected. slot: its slot, if it is
 * not started again; else -1. */
void hvd_rendezvous_expect(const struct hvd_rendezvous_service *service, int slot,
                           int ranks);

/* Of a static job: the process of this rank has ended, with the status of waitpid. Ranks that wait
 * for it in hvd_init hear of it at once. */
void hvd_rendezvous_ended(const struct hvd_rendezvous_service *service, int rank,
                          int wait_status);

/* Ends and collects it. One that was not started is fine. */
void hvd_rendezvous_stop(struct hvd_rendezvous_service *service);

#endif
