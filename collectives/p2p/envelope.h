/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the point-to-point protocol: an envelope, in some types followed by a
 * piece of the user's message. Envelopes between two ranks arrive in the order in which
 * they were sent.
 *
 *   small message         EAGER, followed by its bytes; the send has then ended
 *   large message         OFFER; once a receive matches, one of these:
 *     read in place       the receiver copies from the sender's memory, then sends DONE
 *     through the link    READY from the receiver; the sender answers with DATA, piece by
 *                         piece
 *   sizes disagree        REFUSED, to the sender
 *   the set is aborted    ABORTED, to the sender
 *   memory was freed      TAKEN, so that the sender may send more small messages
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
    uint32_t payload; /* bytes that follow the envelope */
    /* dtype of the message. REFUSED: here and in `bytes`, the dtype and size that the
     * receive expects. */
    uint32_t dtype;
    int32_t set;
    int64_t tag;
    uint64_t bytes;
    uint64_t send; /* number of the send on the sending rank */
    uint64_t receive; /* READY, DATA: number of the receive on the receiving rank */
    uint64_t at; /* OFFER: address of the message; DATA: offset of the piece in it */
    /* cost of all EAGER messages from the addressee that the writer no longer stores */
    uint64_t taken;
};

enum {
    /* Longer messages are sent as an OFFER. At about this size, copying the bytes twice
     * costs as much as answering an offer and one system call. */
    HVD_EAGER_BYTES = 16384,
    /* bytes of a DATA piece; the next piece is written while this one is read */
    HVD_PIECE_BYTES = 32768,
    /* The largest cost of EAGER messages of one sender that a receiver has to store.
     * While the window is full, the sender uses OFFER for small messages, too. */
    HVD_EAGER_WINDOW = 1 << 20,
};

/* Returns how much of the window an EAGER message of this many bytes uses. */
uint64_t hvd_envelope_cost(uint64_t bytes);

/* Checks an envelope from another rank. `there` is the number of bytes that arrived,
 * envelope included. Returns 0 or HVD_ERR_NET. */
int hvd_envelope_check(const struct hvd_envelope *envelope, size_t there,
                       struct hvd_error *err);

#endif
