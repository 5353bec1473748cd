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
 * Ranks of a static job need no rules but np and is_here; HOROVOD_ELASTIC=1 beside HVD_RENDEZVOUS
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
    int max; /* 0: the job is static */
    int start_s; /* how long the first generation waits for np */
    int timeout_s; /* how long ranks wait for min */
    int reset_limit; /* -1: none */
};

struct hvd_rendezvous_service {
    pid_t pid; /* 0: none */
    int orders;
    int events; /* does not block; -1: closed by its reader */
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES]; /* "PORT:KEY", what follows the host */
};

/* Starts program, the path of hvd-rendezvous. Returns 0, or HVD_ERR_SYS and what failed. */
int hvd_rendezvous_start(const char *program, const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *out, struct hvd_error *err);

/* --- an elastic job --- */

/* A process has ended, and so many ranks are still to be expected. slot: its slot, if it is not
 * started again; else -1. */
void hvd_rendezvous_expect(const struct hvd_rendezvous_service *service, int slot,
                           int ranks);

/* The slot was removed: its rank leaves at the next commit; or that is taken back. */
void hvd_rendezvous_leave(const struct hvd_rendezvous_service *service, int slot);
void hvd_rendezvous_stay(const struct hvd_rendezvous_service *service, int slot);

/* A rank has succeeded: ranks that still ask to begin are told to end. A rank that calls exit(0) tells
 * it by itself; this is for one that ends in another way. */
void hvd_rendezvous_done(const struct hvd_rendezvous_service *service);

enum hvd_rendezvous_event {
    HVD_RENDEZVOUS_BEGUN, /* the process of the slot is in a generation */
    HVD_RENDEZVOUS_DROPPED, /* the process of the slot is given up: kill it */
    HVD_RENDEZVOUS_OVER, /* the job is done: end the processes that are left */
};

/* HVD_INPROGRESS: there is none now. HVD_ERR_NET: the service is gone. */
int hvd_rendezvous_next_event(const struct hvd_rendezvous_service *service,
                              enum hvd_rendezvous_event *event, int *slot);

/* --- a static job --- */

/* The process of this rank has ended, with the status of waitpid. Ranks that wait
 * for it in hvd_init hear of it at once. */
void hvd_rendezvous_ended(const struct hvd_rendezvous_service *service, int rank,
                          int wait_status);

/* --- either --- */

/* Ends and collects it. One that was not started is fine. */
void hvd_rendezvous_stop(struct hvd_rendezvous_service *service);

#endif
