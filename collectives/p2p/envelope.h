/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks write to each other about messages: an envelope, and in some a piece of the
 * message behind it. Envelopes of one rank to another arrive in the order in which they
 * were sent.
 *
 *   small message         EAGER, with its bytes: the send has ended
 *   large one             OFFER; once a receive is there, one of these:
 *     read in place       the receiver copies the sender's memory, then DONE
 *     through the link    READY, and the sender answers with DATA, piece by piece
 *   sizes disagree        REFUSED, to the sender
 *   the set is aborted    ABORTED, to the sender
 *   much was taken        TAKEN
 *   the job ends          FLUSH after everything else, answered by FLUSHED */
#ifndef HVD_ENVELOPE_H
#define HVD_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

enum hvd_envelope_type {
    HVD_ENVELOPE_EAGER = 1,
    HVD_ENVELOPE_OFFER,
    HVD_ENVELOPE_READY,
    HVD_ENVELOPE_DATA,
    HVD_ENVELOPE_DONE,
    HVD_ENVELOPE_REFUSED,
    HVD_ENVELOPE_ABORTED,
    HVD_ENVELOPE_TAKEN,
    HVD_ENVELOPE_FLUSH,
    HVD_ENVELOPE_FLUSHED,
    HVD_ENVELOPE_TYPES
};

struct hvd_envelope {
    uint32_t type;
    uint32_t payload; /* bytes behind the envelope */
    uint32_t dtype; /* of the message; REFUSED: of the receive; so are bytes */
    int32_t set;
    int64_t tag;
    uint64_t bytes;
    uint64_t send; /* number of the send, on its rank */
    uint64_t receive; /* READY, DATA: number of the receive, on its rank */
    uint64_t at; /* OFFER: address of the message; DATA: place of the piece in it */
    uint64_t taken; /* what the writer has taken so far of EAGER messages, by cost */
};

enum {
    /* More is offered. Copying twice costs as much as the answer to an offer, and a
     * system call, at about this size. */
    HVD_EAGER_BYTES = 16384,
    /* Of DATA; the next is written while this one is read. */
    HVD_PIECE_BYTES = 32768,
    /* EAGER messages that a receiver has to keep, by cost: what more is sent is
     * offered. */
    HVD_EAGER_WINDOW = 1 << 20,
};

/* What keeping an EAGER message costs a receiver. */
uint64_t hvd_envelope_cost(uint64_t bytes);

/* Another rank wrote this, with `there` bytes altogether. Returns 0 or HVD_ERR_NET. */
int hvd_envelope_check(const struct hvd_envelope *envelope, size_t there,
                       struct hvd_error *err);

#endif
