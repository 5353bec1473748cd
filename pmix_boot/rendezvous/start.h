/* SPDX-License-Identifier: Apache-2.0 */
/* How a launcher starts the rendezvous service of its job, as a child process. Needs only
 * libc: the plugin in srun links it.
 *
 *   hvd_rendezvous_start(program, &rules, &service, err)
 *                            program: LIBDIR/hvd/hvd-rendezvous
 *   for each rank            HVD_RENDEZVOUS=HOST:<service.address>, or rules.path in
 *                            place of HOST; HOROVOD_RANK and HOROVOD_SIZE
 *   hvd_rendezvous_ended(&service, rank, wait_status)
 *                            when the launcher sees a rank end
 *   hvd_rendezvous_stop(&service)
 *
 * A static job needs only the rules np and is_here; HOROVOD_ELASTIC=1 beside
 * HVD_RENDEZVOUS makes a job elastic. */
#ifndef HVD_RENDEZVOUS_START_H
#define HVD_RENDEZVOUS_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

#define HVD_RENDEZVOUS_START_TEXT_BYTES 96

struct hvd_rendezvous_rules {
    int np; /* number of ranks that are started */
    bool is_here; /* all ranks are on this machine */
    /* "FIRST-LAST", the ports to choose from if ranks are on other machines; NULL: any */
    const char *ports;
    /* Path of a socket to create instead of listening on a TCP port; NULL: none. */
    const char *path;
    /* Elastic jobs only: */
    int min; /* the smallest number of ranks that train */
    int max; /* 0 in a static job */
    int start_s; /* how long the first generation waits for np */
    int timeout_s; /* how long ranks wait until there are `min` */
    int reset_limit; /* -1: no limit */
};

struct hvd_rendezvous_service {
    pid_t pid; /* 0 if there is no service */
    int orders;
    int events; /* non-blocking; -1 once its reader has closed it */
    /* "PORT:KEY", the part of the address after the host */
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES];
};

/* Starts program, the path of hvd-rendezvous. Returns 0, or HVD_ERR_SYS and the cause. */
int hvd_rendezvous_start(const char *program, const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *out, struct hvd_error *err);

/* --- an elastic job --- */

/* Tells the service that a process has ended and that this many ranks are still expected.
 * slot: its slot if it is not started again, else -1. */
void hvd_rendezvous_expect(const struct hvd_rendezvous_service *service, int slot,
                           int ranks);

/* Tell the service that a slot was removed, so that its rank leaves at the next commit,
 * or take that back. */
void hvd_rendezvous_leave(const struct hvd_rendezvous_service *service, int slot);
void hvd_rendezvous_stay(const struct hvd_rendezvous_service *service, int slot);

/* Tells the service that a rank has succeeded: ranks that still ask to begin are told to
 * end. A rank that calls exit(0) reports that itself; this is for a rank that ends in
 * another way. */
void hvd_rendezvous_done(const struct hvd_rendezvous_service *service);

enum hvd_rendezvous_event {
    HVD_RENDEZVOUS_BEGUN, /* the process of the slot is part of a generation */
    HVD_RENDEZVOUS_DROPPED, /* the process of the slot has been given up: kill it */
    HVD_RENDEZVOUS_OVER, /* the job is done: end the remaining processes */
};

/* Reads the next event. Returns HVD_INPROGRESS if there is none, or HVD_ERR_NET if the
 * service is gone. */
int hvd_rendezvous_next_event(const struct hvd_rendezvous_service *service,
                              enum hvd_rendezvous_event *event, int *slot);

/* --- a static job --- */

/* Tells the service that the process of this rank has ended, with the status of waitpid.
 * Ranks that wait for it in hvd_init are told at once. */
void hvd_rendezvous_ended(const struct hvd_rendezvous_service *service, int rank,
                          int wait_status);

/* --- either --- */

/* Ends the service and waits for it. Does nothing if it was not started. */
void hvd_rendezvous_stop(struct hvd_rendezvous_service *service);

#endif
