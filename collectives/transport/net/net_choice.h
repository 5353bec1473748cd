/* SPDX-License-Identifier: Apache-2.0 */
/* UCX or TCP between nodes: what the user chose (HVD_NET), and what a rank has. */
#ifndef HVD_NET_CHOICE_H
#define HVD_NET_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

enum hvd_net_choice {
    HVD_NET_AUTO, /* UCX if all ranks have an RDMA adapter that it may use, else TCP */
    HVD_NET_UCX, /* whatever the network; it is an error if a rank cannot */
    HVD_NET_TCP,
};

/* How messages over TCP are protected: HVD_NET_SECURITY. */
enum hvd_net_security {
    HVD_NET_SECURITY_OBJECTS,
    HVD_NET_SECURITY_MESSAGES,
    HVD_NET_SECURITY_ENCRYPT,
};

/* Reads HVD_NET_SECURITY. HVD_ERR_ARG for an unknown word: a typing mistake must not mean
 * less protection than the user wanted. */
int hvd_net_choice_security(enum hvd_net_security *security, struct hvd_error *err);

const char *hvd_net_choice_security_word(enum hvd_net_security security);

/* The choice that a value of HVD_NET means; HVD_NET_AUTO for NULL and what is no word for one, which sets
 * *is_wrong. */
enum hvd_net_choice hvd_net_choice_of(const char *text, bool *is_wrong);

/* Why messages of this rank go through sockets, by TCP or UCX, as below. False: over RDMA. */
bool hvd_net_choice_has_no_rdma(enum hvd_net_choice choice, char *text, size_t size);

/* Why this rank does not use UCX, as an end of a sentence: "UCX_TLS=tcp". False: it does. */
bool hvd_net_choice_obstacle(enum hvd_net_choice choice, char *text, size_t size);

#endif
