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
    /* above all types of the layers that use a connection */
    HVD_CONNECT_HELLO = 0x40000000,
    HVD_CONNECT_CHALLENGE,
    HVD_CONNECT_PROOF,
    HVD_CONNECT_WELCOME,
    HVD_CONNECT_TYPES, /* types of the connection's user begin here */
};

#endif
