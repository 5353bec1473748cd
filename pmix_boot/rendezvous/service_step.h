/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the roster, carried out: messages to ranks, events to the launcher, and
 * connections that end. Ranks are named by the descriptors of their connections. */
#ifndef HVD_SERVICE_STEP_H
#define HVD_SERVICE_STEP_H

#include "pmix_boot/rendezvous/service_state.h"

/* Sends a message to a rank, if it is still connected. A connection for which memory runs
 * out is over. */
void hvd_service_send(struct hvd_service *service, int id, uint32_t type,
                      const void *data, size_t bytes);

/* Tells a rank why it cannot begin. */
void hvd_service_refuse(struct hvd_service *service, int id,
                        const struct hvd_roster_failure *failure);

/* Ends a connection, which leaves the array: the last one takes its position. Tells the
 * other ranks if a rank of the running generation is gone. */
void hvd_service_remove(struct hvd_service *service, struct hvd_connection *connection);

/* Repeats the answer to a rank that has not got it. Returns whether there is one. */
bool hvd_service_repeat(struct hvd_service *service,
                        const struct hvd_connection *connection,
                        const struct hvd_rendezvous_join *head);

/* Returns whether the process was given up, and is being killed. */
bool hvd_service_has_dropped(const struct hvd_service *service,
                             const struct hvd_rendezvous_process *process);

/* Carries out everything that is due. Returns 0 and when to ask the roster again (-1:
 * after an event), or HVD_ERR_NOMEM. */
int hvd_service_act(struct hvd_service *service, int64_t *again_ms);

#endif
