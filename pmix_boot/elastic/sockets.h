/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets between ranks and the service of an elastic job. */
#ifndef HVD_ELASTIC_SOCKETS_H
#define HVD_ELASTIC_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "pmix_boot/elastic/address.h"

/* Of a clock that nobody sets. */
int64_t hvd_elastic_now_ms(void);

/* Waits for poll's events; false when the time is over. deadline_ms -1: none. */
bool hvd_elastic_wait_for(int fd, short events, int64_t deadline_ms);

/* Connects to the service, which may not listen yet: a socket that does not block, or
 * HVD_ERR_NET. */
int hvd_elastic_dial(const struct hvd_elastic_address *address, int64_t deadline_ms,
                     struct hvd_error *err);

/* Lets the kernel notice a host that vanished within 4 s, as collectives/transport/control/sockets.h. */
void hvd_elastic_keep_alive(int fd);

#endif
