/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between UCX and TCP, depending on HVD_NET and on what the rank's node has. */
#ifndef HVD_NET_CHOICE_H
#define HVD_NET_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

enum hvd_net_choice {
    HVD_NET_AUTO, /* UCX if all ranks have an RDMA adapter that it may use, else TCP */
    HVD_NET_UCX, /* UCX over any network; a rank that cannot use it is an error */
    HVD_NET_TCP,
};

/* HVD_NET_SECURITY: how messages over TCP are protected. */
enum hvd_net_security {
    HVD_NET_SECURITY_OBJECTS,
    HVD_NET_SECURITY_MESSAGES,
    HVD_NET_SECURITY_ENCRYPT,
};

/* Reads HVD_NET_SECURITY. Returns HVD_ERR_ARG for an unknown word: a typing mistake must
 * not lower the protection. */
int hvd_net_choice_security(enum hvd_net_security *security, struct hvd_error *err);

const char *hvd_net_choice_security_word(enum hvd_net_security security);

/* Parses a value of HVD_NET. NULL and unknown words give HVD_NET_AUTO; unknown words set
 * *is_wrong. */
enum hvd_net_choice hvd_net_choice_of(const char *text, bool *is_wrong);

/* Returns true and writes the reason to text if messages of this rank go through sockets,
 * over TCP or UCX. Returns false if they go over RDMA. */
bool hvd_net_choice_has_no_rdma(enum hvd_net_choice choice, char *text, size_t size);

/* Returns true and writes the reason to text if this rank does not use UCX. Returns false
 * if it does. The text is the end of a sentence, such as "UCX_TLS=tcp". */
bool hvd_net_choice_obstacle(enum hvd_net_choice choice, char *text, size_t size);

#endif
