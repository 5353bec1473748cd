/* SPDX-License-Identifier: Apache-2.0 */
/* The first messages of a connection between two ranks. The layer that uses the
 * connection defines the messages that follow.
 *
 *   child                     parent
 *     ── HELLO ────────────────►     see sock/handshake.h
 *     ◄─ CHALLENGE ─────────────
 *     ── PROOF ────────────────►
 *     ◄─ WELCOME ───────────────     the parent has admitted the child */
#ifndef HVD_CONNECT_PROTOCOL_H
#define HVD_CONNECT_PROTOCOL_H

enum hvd_connect_type {
    /* messages after the handshake have types below this one, or from HVD_CONNECT_TYPES
     * on */
    HVD_CONNECT_HELLO = 0x40000000,
    HVD_CONNECT_CHALLENGE,
    HVD_CONNECT_PROOF,
    HVD_CONNECT_WELCOME,
    HVD_CONNECT_TYPES, /* the first type that the control tree may use for itself */
};

#endif
