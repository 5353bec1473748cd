/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's side of an elastic job: one connection to the service, from the first join to
 * the end of the process. When the connection closes, the service learns that this
 * process died. exit(0) tells the service that the training has succeeded. A forked child
 * does not keep the connection open.
 *
 * Threads: any, but only one may join at a time. Meanwhile the other functions report
 * nothing new. */
#ifndef HVD_RENDEZVOUS_CLIENT_H
#define HVD_RENDEZVOUS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/join.h"

/* The notices of the service since this rank last joined. */
struct hvd_rendezvous_notices {
    uint32_t changes; /* a bit field of enum hvd_roster_change */
    int lost; /* a rank of this generation that is gone, or -1 */
    /* The connection to the service broke: the service takes this rank for dead, and the
     * others begin anew without it. */
    bool is_cut;
};

/* Joins, and waits until the next generation of ranks begins. The caller owns
 * generation->cards. Fails with HVD_ERR_ARG for a bad address; HVD_ERR_NET if the service
 * cannot be reached or is gone; HVD_ERR_TIMEOUT or HVD_ERR_STATE, with the service's own
 * text, if this job cannot go on; HVD_ERR_DISMISSED if this process is not needed. */
int hvd_rendezvous_client_join(const struct hvd_rendezvous_join_query *query,
                               struct hvd_rendezvous_generation *generation,
                               struct hvd_error *err);

/* Tells the service that this rank has the state of the training, which only such ranks
 * can pass on. Does nothing before the first join. */
void hvd_rendezvous_client_ready(void);

/* Reads what the service has sent. Does not block. */
struct hvd_rendezvous_notices hvd_rendezvous_client_notices(void);

#endif
