/* SPDX-License-Identifier: Apache-2.0 */
/* The control network's own messages; all others on its links are the engine's.
 *
 *   child                     parent
 *     ...                            connect_protocol.h
 *     ── JOINED (descriptor) ──►     from here on a closed link is a death
 *     ◄─ SHARE (descriptor) ... ─    on a node: the leader's, and one of each local rank
 *     ── READY ────────────────►     it has all it needs, and so have all ranks below it
 *     ◄─ GO ────────────────────     the whole tree is up */
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

/* Larger messages are refused: no agreement comes near, garbage does. */
#define HVD_CONTROL_MAX_BYTES (64u << 20)

#define HVD_CONTROL_REASON_BYTES 512

struct hvd_control_reason {
    int32_t rank; /* the reason why the job ends */
    int32_t status; /* enum hvd_status */
    char text[HVD_CONTROL_REASON_BYTES];
};

#endif
