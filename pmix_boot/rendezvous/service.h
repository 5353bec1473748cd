/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous service of a job: ranks join, and receive the cards of the ranks with
 * which they begin. In an elastic job they stay connected and join again; in a static job
 * they leave after the answer. The service ends with the launcher, even if all ranks die
 * before. A closed connection tells it which rank died. */
#ifndef HVD_RENDEZVOUS_SERVICE_H
#define HVD_RENDEZVOUS_SERVICE_H

#include "pmix_boot/rendezvous/channel.h"
#include "pmix_boot/rendezvous/roster.h"

struct hvd_rendezvous_service_config {
    struct hvd_roster_rules rules;
    int listening; /* a listening, non-blocking TCP socket */
    int orders; /* from the launcher, see start.h; when it closes, the service ends */
    int events; /* to the launcher, see start.h; non-blocking, and may go unread */
    unsigned char key[HVD_CHANNEL_KEY_BYTES];
    /* The launcher is srun, which cannot kill a single rank: see slurm_kill.h. */
    bool is_under_srun;
};

/* Serves until `orders` closes. Reports about the job go to hvd_log as warnings. Returns
 * 0 or HVD_ERR_NOMEM. */
int hvd_rendezvous_service_run(const struct hvd_rendezvous_service_config *config);

#endif
