/* SPDX-License-Identifier: Apache-2.0 */
/* One report on the wire: "KEY HOST\n", the table, end of stream. */
#ifndef HVD_SPANK_REPORT_WIRE_H
#define HVD_SPANK_REPORT_WIRE_H

#include "gpu_binding/base/error.h"

/* A random number in hexadecimal: who knows it was started by this srun. */
struct hvd_report_key {
    char text[33];
};

struct hvd_report_message {
    char host[65];
    char *text; /* printable, lines end in '\n'; the receiver frees it */
};

int hvd_report_key_make(struct hvd_report_key *key, struct hvd_error *err);

/* A socket on any port of any address with room for `backlog` callers. */
int hvd_report_listen(int backlog, int *listener, int *port, struct hvd_error *err);

/* Reads a whole report from a connection, for 2 s at most. HVD_ERR_NET when it is none, too
 * long, or has another key. */
int hvd_report_receive(int fd, const struct hvd_report_key *key,
                       struct hvd_report_message *message);

#endif
