/* SPDX-License-Identifier: Apache-2.0 */
/* The first messages of a connection between two ranks; those that follow are of who uses it.
 *
 *   child                     parent
 *     ── HELLO ────────────────►     see wire/handshake.h
 *     ◄─ CHALLENGE ─────────────
 *     ── PROOF ────────────────►
 *     ◄─ WELCOME ───────────────     the parent knows the child */
#ifndef HVD_CONNECT_PROTOCOL_H
#define HVD_CONNECT_PROTOCOL_H

enum hvd_connect_type {
    HVD_CONNECT_HELLO = 0x40000000, /* the engine's types are smaller */
    HVD_CONNECT_CHALLENGE,
    HVD_CONNECT_PROOF,
    HVD_CONNECT_WELCOME,
    HVD_CONNECT_TYPES, /* those of others begin here */
};

#endif
