/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the control tree itself. All other messages on its links belong to its
 * users.
 *
 *   child                     parent
 *     ...                            connect_protocol.h
 *     ── JOINED (descriptor) ──►     from here on a closed link is a death
 *     ◄─ SHARE (descriptor) ... ─    on a node: the leader's, and one of each local rank
 *     ── READY ────────────────►     the child and all ranks below it are connected
 *     ◄─ GO ────────────────────     the whole tree is up
 *
 * If a connection to another node is reset before GO, the child connects again, and both
 * begin anew with JOINED. */
#ifndef HVD_CONTROL_PROTOCOL_H
#define HVD_CONTROL_PROTOCOL_H

#include <stdint.h>

#include "collectives/transport/connect/connect_protocol.h"

enum hvd_control_type {
    HVD_CONTROL_TYPE_JOINED = HVD_CONNECT_TYPES,
    HVD_CONTROL_TYPE_SHARE,
    HVD_CONTROL_TYPE_READY,
    HVD_CONTROL_TYPE_GO,
    HVD_CONTROL_TYPE_ABORT,
};

/* Larger messages are refused as garbage; messages of the agreement are far smaller. */
#define HVD_CONTROL_MAX_BYTES (64u << 20)

#define HVD_CONTROL_REASON_BYTES 512

struct hvd_control_reason {
    int32_t rank; /* the rank that ends the job */
    int32_t status; /* an enum hvd_status */
    char text[HVD_CONTROL_REASON_BYTES];
};

#endif
