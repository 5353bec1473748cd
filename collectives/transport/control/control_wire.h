/* SPDX-License-Identifier: Apache-2.0 */
/* What the control network says to itself; everything else on its links is the engine's.
 *
 *   child                     parent
 *     ── HELLO ────────────────►     see handshake.h
 *     ◄─ CHALLENGE ─────────────
 *     ── PROOF ────────────────►
 *     ◄─ WELCOME ───────────────     the parent knows the child
 *     ── JOINED (descriptor) ──►     from here on a closed link is a death
 *     ◄─ SHARE (descriptor) ... ─    on a node: the leader's, and one of each local rank
 *     ── READY ────────────────►     it has all it needs, and so have all ranks below it
 *     ◄─ GO ────────────────────     the whole tree is up */
#ifndef HVD_CONTROL_WIRE_H
#define HVD_CONTROL_WIRE_H

#include <stdint.h>

enum hvd_wire_type {
    HVD_WIRE_HELLO = 0x40000000, /* the engine's types are smaller */
    HVD_WIRE_CHALLENGE,
    HVD_WIRE_PROOF,
    HVD_WIRE_WELCOME,
    HVD_WIRE_JOINED,
    HVD_WIRE_SHARE,
    HVD_WIRE_READY,
    HVD_WIRE_GO,
    HVD_WIRE_ABORT,
};

/* Larger messages are refused: no agreement comes near, garbage does. */
#define HVD_WIRE_MAX_BYTES (64u << 20)

#define HVD_WIRE_TEXT_BYTES 512

#define HVD_WIRE_LEADERS (-1)

/* JOINED from a local rank, and SHARE. */
struct hvd_wire_share {
    int32_t local_rank; /* whose descriptor; HVD_WIRE_LEADERS: the one for all */
    int32_t is_there; /* 0: there is none, and none comes along */
};

struct hvd_wire_abort {
    int32_t rank; /* the reason why the job ends */
    int32_t status; /* enum hvd_status */
    char text[HVD_WIRE_TEXT_BYTES];
};

#endif
