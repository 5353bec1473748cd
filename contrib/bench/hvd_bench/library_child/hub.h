/* SPDX-License-Identifier: Apache-2.0 */
/* Where the children of a job meet: rank 0's serves PMI to all, in a thread that sleeps unless it
 * is asked. */
#ifndef HVD_BENCH_HUB_H
#define HVD_BENCH_HUB_H

#include "contrib/bench/hvd_bench/library_child/library.h"

/* Serves as many as layout has ranks ("2,1"), each of which first gets the greeting. *port: on all
 * addresses of this host. The process ends, with a word on the standard error, when one of them
 * leaves while others are there: they would wait for it. */
int bench_hub_start(const char *layout, const char greeting[BENCH_GREETING], int *port,
                    struct hvd_error *err);

/* Leaves in good order. fd: of join, or -1. Who serves waits until all have left. */
void bench_hub_leave(int fd);

/* Joins the one at host and port. *fd: the connection; the caller keeps it to the end. */
int bench_hub_join(const char *host, int port, char greeting[BENCH_GREETING], int *fd,
                   struct hvd_error *err);

#endif
