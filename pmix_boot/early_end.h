/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a static job that end before they have called init, so that the others would
 * wait for them until the time limit. hvdrun sees its processes end. srun tells nobody of
 * a task that ends with 0, so the rank itself tells the rendezvous service, by a handler
 * that runs when the process calls exit. It is registered when libhvd is loaded, and only
 * in the process that Slurm has started as the task: other processes of the task may end
 * before the one that calls init.
 *
 *   ends early    ── ENDED ──►  service  ── REFUSED ──►  waits, without PMIx: join.h
 *                                        ── ENDED ────►  waits for PMIx: below
 *
 * Threads: any. */
#ifndef HVD_EARLY_END_H
#define HVD_EARLY_END_H

#include "pmix_boot/modex.h"

/* Tells that this process calls init: its end will not be early. */
void hvd_early_end_forget(void);

/* Waits until the helper that speaks PMIx has answered on fd. If that takes long, asks
 * the service whether a rank of the query has ended early. Returns 0 once fd is readable,
 * the time limit of the query has passed, or the service cannot tell; or HVD_ERR_PEER,
 * naming the rank that has ended. */
int hvd_early_end_wait(int fd, const struct hvd_modex_query *query,
                       struct hvd_error *err);

#endif
