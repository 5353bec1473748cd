/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous service of a job: ranks join, and get the cards of those with whom they
 * begin. In an elastic job they stay connected and join again; in a static one they leave
 * with the answer. It ends with the launcher, even if all ranks die before; a closed
 * connection tells it which rank died. */
#ifndef HVD_RENDEZVOUS_SERVICE_H
#define HVD_RENDEZVOUS_SERVICE_H

#include "pmix_boot/rendezvous/channel.h"
#include "pmix_boot/rendezvous/roster.h"

struct hvd_rendezvous_service_config {
    struct hvd_roster_rules rules;
    int listening; /* a TCP socket that listens and does not block */
    int orders; /* from the launcher, see start.h; its end ends the service */
    int events; /* to the launcher, see start.h; does not block. One that nobody reads is fine */
    unsigned char key[HVD_CHANNEL_KEY_BYTES];
    /* The launcher is srun, which cannot kill a rank that is dropped: see slurm_kill.h. */
    bool is_under_srun;
};

/* Serves until orders ends. What happens to the job goes to hvd_log as warnings. Returns 0, or
 * HVD_ERR_NOMEM. */
int hvd_rendezvous_service_run(const struct hvd_rendezvous_service_config *config);

#endif
